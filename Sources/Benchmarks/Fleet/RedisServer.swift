import CacheEngine
import CacheTestSupport
import Platform
import RESP
import RedisClient

/// A redis-server on a free port of loopback; it ends with the object, and with this program.
final class RedisServer {
    /// Starts the server, and ends it once the shell's input is closed.
    ///
    /// So it also ends if this program is killed, and if the server itself is stopped.
    private static let keeper = """
        trap '' INT TERM HUP
        redis-server "$@" >/dev/null 2>&1 &
        echo $!
        read -r line
        kill -9 $!
        """

    /// The path of fleets on this server.
    private static let namespace = "bench"

    let port: UInt16
    private let shell: Subprocess
    private let process: pid_t
    private let scratch: ScratchDirectory

    /// Starts a server, and waits until it answers.
    init(_ plan: WorkloadPlan) async throws {
        guard Subprocess.firstLine(of: ["redis-server", "--version"]) != nil else {
            throw UsageError("redis-server cannot be started; run perf/setup tests")
        }
        port = try FreePort.next()
        scratch = try ScratchDirectory(in: plan.scratchDirectory)
        shell = try Subprocess(
            [
                "sh", "-c", Self.keeper, "redis", "--port", "\(port)", "--bind", "127.0.0.1",
                "--save", "", "--dir", scratch.path,
            ],
            errors: .dropped
        )
        guard let line = try shell.receiveLine(), let process = pid_t(line), process > 0 else {
            throw UsageError("redis-server cannot be started; run perf/setup tests")
        }
        self.process = process
        let client = try self.client()
        let isUp = await eventually { (try? await client.send(RESPCommand("PING"))) != nil }
        await client.shutDown()
        try WorkloadFailure.require(isUp, "redis-server does not answer on port \(port)")
    }

    deinit { shell.finish() }

    var url: String { "redis://127.0.0.1:\(port)/\(Self.namespace)" }

    /// A client with the limits that the shared store has.
    func client() throws -> RedisClient { try RedisClient(RedisURL(url)) }

    /// The names of all records on the server.
    func recordNames() async throws -> [String] {
        let client = try RedisClient(RedisURL(url), RedisOptions(readLimit: .seconds(5)))
        let reply = try await client.send(RESPCommand("KEYS", key: nil, "ce1:\(Self.namespace):*"))
        await client.shutDown()
        return (reply.elements ?? []).compactMap(\.text)
            .filter { !$0.contains("{log}") && !$0.hasSuffix(":l") }
    }

    /// Removes everything from the server.
    func empty() async throws {
        let client = try RedisClient(RedisURL(url), RedisOptions(readLimit: .seconds(5)))
        _ = try await client.send(RESPCommand("FLUSHALL"))
        await client.shutDown()
    }

    /// Stops the process, which keeps its sockets.
    func stop() { kill(process, SIGSTOP) }

    func resume() { kill(process, SIGCONT) }
}
