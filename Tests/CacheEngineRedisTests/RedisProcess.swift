import CacheTestSupport
import Foundation
import Platform
import RESP
import RedisClient
import Testing

/// The length of the tests that repeat a fault: `make fleet` asks for their whole number of rounds.
enum FleetRounds {
    private static let isWhole = ProcessInfo.processInfo.environment["FLEET_ROUNDS"] == "all"

    static func scaled(_ few: Int, to all: Int) -> Int { isWhole ? all : few }
    static var minutes: TimeLimitTrait.Duration { .minutes(isWhole ? 20 : 2) }
}

/// A redis-server of one test, with its own folder and port; it ends with the object.
final class RedisProcess {
    static let program = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]
        .map { "\($0)/redis-server" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    static let isInstalled = program != nil
    static let remedy = "These tests need redis-server. Please run: perf/setup tests"

    let port: UInt16
    private let folder = TemporaryFolder()
    private let words: [String]
    private var process: pid_t?
    private var client: RedisClient?

    /// Starts a server with further words of a command line, and waits until it answers.
    init(_ options: String...) async throws {
        port = try LoopbackSocket.freePort()
        words =
            ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--dir", folder.path]
            + ["--loglevel", "warning", "--repl-diskless-sync-delay", "0"] + options
        try await start()
    }

    deinit { kill() }

    var url: String { "redis://127.0.0.1:\(port)/test" }

    /// Starts the server, also after `kill`.
    func start() async throws {
        guard let program = Self.program else { throw LoopbackSocket.Failure() }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        var arguments = ([program] + words).map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var started: pid_t = 0
        guard posix_spawn(&started, program, &actions, nil, &arguments, environ) == 0 else {
            throw LoopbackSocket.Failure()
        }
        process = started
        client = try Self.client("redis://127.0.0.1:\(port)")
        let isUp = await eventually {
            do throws(RedisError) {
                _ = try await client?.send(RESPCommand("PING"))
                return true
            } catch {
                // A server with a password answers so.
                return error.code == .notPermitted
            }
        }
        guard isUp else { throw LoopbackSocket.Failure() }
    }

    private static func client(_ url: String) throws -> RedisClient {
        let limits = CircuitBreaker.Limits(openLimitMax: .milliseconds(250))
        let options = RedisOptions(
            connectLimit: .seconds(5),
            readLimit: .seconds(5),
            oldestReplyLimit: .seconds(5),
            breaker: limits
        )
        return try RedisClient(RedisURL(url), options)
    }

    /// Sends one command of the test.
    @discardableResult
    func command(_ words: String...) async throws -> RESPValue {
        var command = RESPCommand("EVAL")
        command.add("return redis.call(unpack(ARGV))")
        command.add("0")
        if let admin = words.first, Self.adminCommands.contains(admin) {
            command = RESPCommand(admin == "REPLICAOF" ? "REPLICAOF" : "CONFIG")
            for word in words.dropFirst() { command.add(word) }
        } else {
            for word in words { command.add(word) }
        }
        guard let client else { throw LoopbackSocket.Failure() }
        return try await client.send(command)
    }

    /// Commands that no script may send.
    private static let adminCommands = ["REPLICAOF", "CONFIG"]

    /// The number in a line of INFO.
    func info(_ name: String, in section: String = "default") async throws -> String? {
        guard let client else { return nil }
        let text = try await client.send(RESPCommand("INFO", key: nil, section)).text ?? ""
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + ":") }
        return line.map { String($0.dropFirst(name.count + 1)) }
    }

    /// Ends the server at once.
    func kill() {
        guard let process else { return }
        Platform.kill(process, SIGKILL)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        self.process = nil
    }

    /// Stops the server's process, which keeps its sockets.
    func stop() { if let process { Platform.kill(process, SIGSTOP) } }

    func resume() { if let process { Platform.kill(process, SIGCONT) } }
}
