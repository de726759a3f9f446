import Foundation
import FoundationNetworking

/// A running example program of the package.
final class ExampleProgram {
    private let process = Process()
    private let pipe = Pipe()

    init(_ name: String, _ arguments: [String]) throws {
        // The programs are built beside the tests.
        process.executableURL = URL(filePath: CommandLine.arguments[0])
            .deletingLastPathComponent().appending(path: name)
        process.arguments = arguments
        process.standardOutput = pipe
        try process.run()
    }

    deinit { end() }

    /// The whole standard output, once the program has ended.
    func output() async throws -> String {
        let file = pipe.fileHandleForReading
        let data = await Self.onOwnThread { (try? file.readToEnd()) ?? Data() }
        return String(decoding: data, as: UTF8.self)
    }

    func readLine() async -> String? {
        let file = pipe.fileHandleForReading
        return await Self.onOwnThread {
            var line: [UInt8] = []
            while let byte = try? file.read(upToCount: 1)?.first {
                if byte == 0x0A { return String(decoding: line, as: UTF8.self) }
                line.append(byte)
            }
            return nil
        }
    }

    /// Runs blocking work on a new thread, because other tests need Swift's pool.
    private static func onOwnThread<Result: Sendable>(
        _ work: @escaping @Sendable () -> Result
    ) async -> Result {
        await withUnsafeContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: work()) }
        }
    }

    func end() {
        if process.isRunning { process.terminate() }
    }

    static func load(_ url: URL) async throws -> String {
        let (data, _) = try await URLSession(configuration: .ephemeral).data(from: url)
        return String(decoding: data, as: UTF8.self)
    }
}
