import Foundation
import Testing

@testable import CacheProxy

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The program itself: exit statuses, signals, one command from nothing to a hit.
@Suite struct ProcessTests {
    /// The program lies beside the bundle of tests.
    static var program: URL? {
        for bundle in Bundle.allBundles + [Bundle.main] {
            for folder in [bundle.bundleURL, bundle.bundleURL.deletingLastPathComponent()] {
                let place = folder.appending(path: "cache-proxy")
                if FileManager.default.isExecutableFile(atPath: place.path()) { return place }
            }
        }
        return nil
    }

    struct Outcome: Sendable {
        var status: Int32
        var output: String
        var errors: String
    }

    static func run(_ arguments: [String]) async throws -> Outcome {
        let program = try #require(program)
        return try await onThread {
            let process = Process()
            process.executableURL = program
            process.arguments = arguments
            let output = Pipe()
            let errors = Pipe()
            process.standardOutput = output
            process.standardError = errors
            try process.run()
            let text = output.fileHandleForReading.readDataToEndOfFile()
            let complaints = errors.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            return Outcome(
                status: process.terminationStatus,
                output: String(decoding: text, as: UTF8.self),
                errors: String(decoding: complaints, as: UTF8.self)
            )
        }
    }

    @Test func versionHelpAndCheckEndWell() async throws {
        #expect(try await Self.run(["--version"]).output.hasPrefix("cache-proxy "))
        #expect(try await Self.run(["--help"]).output.contains("--origin URL"))
        let check = try await Self.run(["--origin", "http://a", "--check-config"])
        #expect(check.status == 0 && check.errors.isEmpty)
    }

    @Test func mistakesAreOneLineAndStatusTwo() async throws {
        let busy = try WireOrigin { _, _ in .end }
        defer { busy.stop() }
        for arguments in [
            ["--frobnicate"], [], ["--origin", "http://a", "--memory", "x"],
            ["--origin", "http://a", "--listen", "127.0.0.1:\(busy.port)"],
            ["--origin", "http://a", "--listen", "127.0.0.1:0", "--disk", "/dev/null/x"],
        ] {
            let outcome = try await Self.run(arguments)
            #expect(outcome.status == 2, "\(arguments)")
            #expect(
                outcome.errors.split(separator: "\n").count == 1,
                "\(arguments) \(outcome.errors)"
            )
        }
    }

    @Test func signalDrainsAndEndsTheProgram() async throws {
        let origin = try WireOrigin { request, socket in
            try socket.answer(200, ["Cache-Control: max-age=60"], "\(request.number)")
        }
        defer { origin.stop() }
        let program = try #require(Self.program)
        let process = Process()
        process.executableURL = program
        process.arguments = [
            "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin.port)",
        ]
        let errors = Pipe()
        process.standardError = errors
        try process.run()
        defer { if process.isRunning { process.terminate() } }
        let handle = errors.fileHandleForReading
        let first = try await onThread { String(decoding: handle.availableData, as: UTF8.self) }
        let port = try #require(
            UInt16(first.split(separator: ":").last?.prefix { $0.isNumber } ?? "")
        )
        let client = try WireClient(port)
        for _ in 0..<2 {
            #expect(try await client.exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n").text == "0")
        }
        kill(process.processIdentifier, SIGHUP)
        let second = try await onThread { String(decoding: handle.availableData, as: UTF8.self) }
        #expect(second.contains("Read the configuration again"))
        kill(process.processIdentifier, SIGTERM)
        #expect(try await client.isClosed())
        let rest = try await onThread {
            let data = handle.readDataToEndOfFile()
            process.waitUntilExit()
            return String(decoding: data, as: UTF8.self)
        }
        #expect(rest.contains("Ended") && process.terminationStatus == 0)
    }
}
