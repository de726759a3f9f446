import CacheTestSupport
import Foundation
import Testing

/// The first program of README.md, built as a package of its own and run.
///
/// `DocumentTests` holds the two blocks of README.md to the texts below.
@Suite(.timeLimit(.minutes(15))) struct ReadmeTests {
    @Test func firstProgramOfTheReadmeCaches() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(200, [("Cache-Control", "max-age=60")], body: "hello")
        }
        let folder = try FirstProgram.write()
        let build = try await FirstProgram.run(["swift", "build"], in: folder)
        try #require(build.status == 0, "\(build.output)")
        let program = folder.appending(path: ".build/debug/hello").path()
        let run = try await FirstProgram.run([program, server.baseURL + "/"], in: folder)
        #expect(run.output == "200 5 origin\n200 5 fresh\n")
        #expect(server.requestCount == 1)
    }
}

private enum FirstProgram {
    static let packageRoot = URL(filePath: #filePath).appending(path: "../../..").standardized

    static let manifest = #"""
        // swift-tools-version: 6.2
        import PackageDescription

        let package = Package(
            name: "hello",
            platforms: [.macOS(.v15)],
            dependencies: [.package(name: "cache-engine", path: "../cache-engine")],
            targets: [
                .executableTarget(
                    name: "hello",
                    dependencies: [
                        .product(name: "CacheEngine", package: "cache-engine"),
                        .product(name: "CurlOrigin", package: "cache-engine"),
                    ]
                )
            ]
        )
        """#

    static let main = #"""
        // Run in the folder hello: swift run hello https://example.com/
        import CacheEngine
        import CurlOrigin

        let url = CommandLine.arguments.dropFirst().first ?? "https://example.com/"
        let cache = try await HTTPCache(
            // One user's cache. A server, which answers many users, has the mode `.shared`.
            configuration: HTTPCache.Configuration(memory: .megabytes(64), mode: .private),
            origin: CurlOrigin()
        )
        do {
            for _ in 1...2 {
                let response = try await cache.respond(to: CacheRequest(url: url))
                let body = try await response.body.collect()
                print(response.status, body.count, response.info.source)
            }
        } catch {
            print("No response:", error)
        }
        await cache.shutDown()
        """#

    /// Writes the package below `.build`, so that a later run builds only changed files.
    static func write() throws -> URL {
        let folder = packageRoot.appending(path: ".build/readme")
        let sources = folder.appending(path: "Sources/hello")
        try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
        let root = packageRoot.path(percentEncoded: false)
        let local = manifest.replacing(#"path: "../cache-engine""#, with: #"path: "\#(root)""#)
        try (local + "\n").write(
            to: folder.appending(path: "Package.swift"),
            atomically: true,
            encoding: .utf8
        )
        try (main + "\n").write(
            to: sources.appending(path: "main.swift"),
            atomically: true,
            encoding: .utf8
        )
        return folder
    }

    /// Runs `words` in `folder`; returns the exit status and all output, errors included.
    static func run(
        _ words: [String],
        in folder: URL
    ) async throws -> (status: Int32, output: String) {
        try await withUnsafeThrowingContinuation { continuation in
            // The wait blocks its thread, so it does not run on a thread of Swift's pool.
            Thread.detachNewThread {
                continuation.resume(with: Result { try runAndWait(words, in: folder) })
            }
        }
    }

    private static func runAndWait(
        _ words: [String],
        in folder: URL
    ) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        process.currentDirectoryURL = folder
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}
