import CacheTestSupport
import Foundation
import Platform
package import RESP
import RedisClient

/// A redis-server of one test, with its own folder and port; it ends with the object.
package final class RedisProcess {
    package static let isInstalled = RedisTool.server != nil && RedisTool.cli != nil
    package static let remedy = "These tests need redis-server. Please run: perf/setup tests"

    package let port: UInt16
    private let folder = TemporaryFolder()
    private let words: [String]
    private var process: pid_t?
    private var client: RedisClient?

    /// Starts a server with further words of a command line, and waits until it answers.
    package init(_ options: [String]) async throws {
        port = try FreePort.next()
        words =
            ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--dir", folder.path]
            + ["--loglevel", "warning", "--repl-diskless-sync-delay", "0"] + options
        try await start()
    }

    package convenience init(_ options: String...) async throws { try await self.init(options) }

    /// Starts a sentinel, which watches `master` under the name `m`.
    package init(sentinelOf master: RedisProcess) async throws {
        port = try FreePort.next()
        let file = folder.path + "/sentinel.conf"
        let lines = [
            "port \(port)", "bind 127.0.0.1", "dir \(folder.path)",
            "sentinel monitor m 127.0.0.1 \(master.port) 1",
        ]
        try lines.joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
        words = [file, "--sentinel"]
        try await start()
    }

    deinit { kill() }

    package var address: String { "127.0.0.1:\(port)" }
    /// The URL of a fleet whose namespace is `test`.
    package var url: String { "redis://\(address)/test" }

    /// The password that the server demands, as a URL gives it.
    ///
    /// Without it the client would pause after the first refusal, and a server that came up after
    /// that refusal would seem not to answer.
    private var login: String {
        guard let option = words.firstIndex(of: "--requirepass"), option + 1 < words.count else {
            return ""
        }
        return ":\(words[option + 1])@"
    }

    /// Starts the server, also after `kill`.
    package func start() async throws {
        guard let program = RedisTool.server else { throw RedisFailure("no redis-server") }
        process = try ChildProgram.start(program, words, output: "/dev/null")
        client = try Self.client("redis://\(login)\(address)")
        let isUp = await eventually {
            do throws(RedisError) {
                _ = try await client?.send(RESPCommand("PING"))
                return true
            } catch {
                // A server whose default user may not send PING answers so.
                return error.code == .notPermitted
            }
        }
        guard isUp else { throw RedisFailure("redis-server \(words) does not answer") }
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
    package func command(_ words: String...) async throws -> RESPValue {
        try await command(words)
    }

    @discardableResult
    package func command(_ words: [String]) async throws -> RESPValue {
        var command = RESPCommand("EVAL")
        command.add("return redis.call(unpack(ARGV))")
        command.add("0")
        if let admin = words.first, Self.adminCommands.contains(admin) {
            switch admin {
            case "REPLICAOF": command = RESPCommand("REPLICAOF")
            case "ACL": command = RESPCommand("ACL")
            default: command = RESPCommand("CONFIG")
            }
            for word in words.dropFirst() { command.add(word) }
        } else {
            for word in words { command.add(word) }
        }
        guard let client else { throw RedisFailure("not started") }
        return try await client.send(command)
    }

    /// Commands that no script may send.
    private static let adminCommands = ["REPLICAOF", "CONFIG", "ACL"]

    /// The output of redis-cli for words that no script may send either.
    @discardableResult
    package func cli(_ words: String...) async throws -> String {
        try await RedisTool.run(["-p", "\(port)"] + words)
    }

    /// The number in a line of INFO.
    package func info(_ name: String, in section: String = "default") async throws -> String? {
        guard let client else { return nil }
        let text = try await client.send(RESPCommand("INFO", key: nil, section)).text ?? ""
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + ":") }
        return line.map { String($0.dropFirst(name.count + 1)) }
    }

    /// Ends the server at once.
    package func kill() {
        guard let process else { return }
        Platform.kill(process, SIGKILL)
        ChildProgram.wait(for: process)
        self.process = nil
    }

    /// Stops the server's process, which keeps its sockets.
    package func stop() { if let process { Platform.kill(process, SIGSTOP) } }

    package func resume() { if let process { Platform.kill(process, SIGCONT) } }
}
