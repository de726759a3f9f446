import CacheTestSupport
import Foundation
import Platform
import Testing

/// The fleet of `Examples/Fleet` in a directory of its own, for the length of one test.
struct RunningFleet: Sendable {
    /// The port of HAProxy.
    let port: UInt16
    let directory: URL
    private let variables: [String]

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static let script = URL(filePath: #filePath)
        .appending(path: "../../../../Examples/Fleet/fleet").standardized

    private init(origin: UInt16, options: [String]) throws {
        let built = try #require(ProcessTests.program)
        let ports = try (0..<4).map { _ in try FreePort.next() }
        port = ports[0]
        directory = URL(filePath: NSTemporaryDirectory())
            .appending(path: "cache-proxy-fleet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let program = try Self.program(built, with: options, in: directory)
        variables = [
            "CACHE_PROXY": program.path(), "HAPROXY": try Self.haproxy(),
            "FLEET_DIR": directory.path(), "FLEET_BIND": "127.0.0.1:\(ports[0])",
            "FLEET_PORT_A": "\(ports[1])", "FLEET_PORT_B": "\(ports[2])",
            "FLEET_PORT_C": "\(ports[3])", "FLEET_ORIGIN": "http://127.0.0.1:\(origin)",
        ].map { "\($0)=\($1)" }
    }

    /// The program, which adds these options to those of the script.
    private static func program(
        _ built: URL,
        with options: [String],
        in directory: URL
    ) throws -> URL {
        guard !options.isEmpty else { return built }
        let wrapper = directory.appending(path: "cache-proxy")
        let line = "exec '\(built.path())' \"$@\" \(options.joined(separator: " "))"
        try "#!/bin/sh\n\(line)\n".write(to: wrapper, atomically: true, encoding: .utf8)
        guard chmod(wrapper.path(), 0o755) == 0 else {
            throw Failure(description: "chmod: \(errno)")
        }
        return wrapper
    }

    /// Starts the fleet in front of an origin, each proxy with these options, and ends it after
    /// `body`.
    static func with(
        origin: UInt16,
        options: [String] = [],
        _ body: (RunningFleet) async throws -> Void
    ) async throws {
        let fleet = try RunningFleet(origin: origin, options: options)
        do {
            try await fleet.run("start")
            try await body(fleet)
        } catch {
            try? await fleet.end()
            throw error
        }
        try await fleet.end()
    }

    private func end() async throws {
        try await run("stop")
        try FileManager.default.removeItem(at: directory)
    }

    /// Runs a command of the script.
    func run(_ arguments: String...) async throws {
        // A file: programs in the background would keep a pipe open.
        let output = directory.appending(path: "output")
        try await onThread { [variables] in
            let process = try ChildProgram.start(
                Self.script.path(),
                Array(arguments),
                variables: variables,
                output: output.path()
            )
            guard ChildProgram.wait(for: process) == 0 else {
                throw Failure(description: try String(contentsOf: output, encoding: .utf8))
            }
        }
    }

    /// Kills one proxy, which then has no time to finish a response.
    func crash(_ name: String) throws {
        let file = directory.appending(path: "\(name).pid")
        let text = try String(contentsOf: file, encoding: .utf8)
        kill(try #require(Int32(text.trimmingCharacters(in: .whitespacesAndNewlines))), SIGKILL)
    }

    private static func haproxy() throws -> String {
        for folder in ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/opt/homebrew/bin"] {
            let path = "\(folder)/haproxy"
            if FileManager.default.isExecutableFile(atPath: path) { return path }
        }
        throw Failure(description: "These tests need haproxy. Please run: perf/setup tests")
    }
}
