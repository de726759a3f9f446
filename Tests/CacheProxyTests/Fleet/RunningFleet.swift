import Foundation
import Platform
import Testing

/// The fleet of `Examples/Fleet` in a directory of its own, for the length of one test.
struct RunningFleet: Sendable {
    /// The port of HAProxy.
    let port: UInt16
    let directory: URL
    private let environment: [String: String]

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static let script = URL(filePath: #filePath)
        .appending(path: "../../../../Examples/Fleet/fleet").standardized

    private init(origin: UInt16) throws {
        let program = try #require(ProcessTests.program)
        let ports = try Self.freePorts(4)
        port = ports[0]
        directory = URL(filePath: NSTemporaryDirectory())
            .appending(path: "cache-proxy-fleet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        environment = ProcessInfo.processInfo.environment.merging([
            "CACHE_PROXY": program.path(), "HAPROXY": try Self.haproxy(),
            "FLEET_DIR": directory.path(), "FLEET_BIND": "127.0.0.1:\(ports[0])",
            "FLEET_PORT_A": "\(ports[1])", "FLEET_PORT_B": "\(ports[2])",
            "FLEET_PORT_C": "\(ports[3])", "FLEET_ORIGIN": "http://127.0.0.1:\(origin)",
        ]) { _, own in own }
    }

    /// Starts the fleet in front of an origin, and ends it behind `body`.
    static func with(origin: UInt16, _ body: (RunningFleet) async throws -> Void) async throws {
        let fleet = try RunningFleet(origin: origin)
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
        let variables = environment.map { "\($0.key)=\($0.value)" }
        // A file: programs in the background would keep a pipe open.
        let output = directory.appending(path: "output")
        try await onThread {
            let process = try Self.start(arguments, variables, output: output.path())
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            guard status == 0 else {
                throw Failure(description: try String(contentsOf: output, encoding: .utf8))
            }
        }
    }

    /// Starts the script without the descriptors of this process.
    ///
    /// Programs in the background would keep them; `Process` passes one on and waits for its end.
    private static func start(_ arguments: [String], _ variables: [String], output: String) throws
        -> pid_t
    {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        let closing = "for n in /dev/fd/*; do n=${n##*/}; [ $n -le 2 ] || eval \"exec $n>&-\"; done"
        let line = ["bash", "-c", closing + "; exec \"$0\" \"$@\"", script.path()] + arguments
        var words = line.map { strdup($0) } + [nil]
        var settings = variables.map { strdup($0) } + [nil]
        defer { (words + settings).forEach { free($0) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, "/bin/bash", &actions, nil, &words, &settings)
        guard code == 0 else { throw Failure(description: "fleet did not start: \(code)") }
        return process
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

    /// Ports that the kernel chose and nothing uses any more.
    private static func freePorts(_ count: Int) throws -> [UInt16] {
        let origins = try (0..<count).map { _ in try WireOrigin { _, _ in .end } }
        defer { for origin in origins { origin.stop() } }
        return origins.map(\.port)
    }
}
