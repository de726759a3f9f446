import CacheTestSupport
import Foundation

/// A step of the servers that failed.
package struct RedisFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The programs of Redis on this machine.
enum RedisTool {
    static let server = path(of: "redis-server")
    static let cli = path(of: "redis-cli")

    private static func path(of program: String) -> String? {
        ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]
            .map { "\($0)/\(program)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// The output of redis-cli.
    @discardableResult
    static func run(_ words: [String]) async throws -> String {
        guard let cli else { throw RedisFailure("no redis-cli") }
        let (status, text) = await PlainThread.run { () -> (Int32, String) in
            let process = Process()
            process.executableURL = URL(filePath: cli)
            process.arguments = words
            let output = Pipe()
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            do { try process.run() } catch { return (-1, "") }
            let data = (try? output.fileHandleForReading.readToEnd()) ?? Data()
            process.waitUntilExit()
            return (process.terminationStatus, String(decoding: data, as: UTF8.self))
        }
        guard status == 0 else { throw RedisFailure("redis-cli \(words): \(status), \(text)") }
        return text
    }
}
