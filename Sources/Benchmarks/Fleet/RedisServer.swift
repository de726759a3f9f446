import CacheEngine
import CacheEngineRedis
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
    /// Whether look-ups take as long as they need; otherwise they have the limits of the product.
    private let isPatient: Bool
    private let shell: Subprocess
    private let process: pid_t
    private let scratch: ScratchDirectory

    /// Starts a server, and waits until it answers.
    init(_ plan: WorkloadPlan, isPatient: Bool) async throws {
        self.isPatient = isPatient
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
    func client() throws -> RedisClient {
        try RedisClient(RedisURL(url), isPatient ? .patient : RedisOptions())
    }

    /// The place of a machine in the fleet of this server.
    func fleet(_ options: RedisFleetOptions) throws -> Fleet {
        guard isPatient else { return try .redis(url, options: options) }
        let parsed = try RedisURL(url)
        return Fleet {
            try RedisFleet(
                log: RedisClient(parsed, .patient),
                entries: options.shares == .entries ? RedisClient(parsed, .patient) : nil,
                parsed.namespace,
                at: parsed.hosts[0],
                options,
                FleetSurroundings(patience: .patient)
            )
        }
    }

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

extension WorkloadPlan {
    /// Whether look-ups in a shared store take as long as they need.
    ///
    /// The figures of a smoke run mean nothing, and a busy machine must lose no look-up.
    var isPatient: Bool { scale == .smoke }
}

extension RedisOptions {
    /// Limits that a busy machine keeps too.
    fileprivate static var patient: RedisOptions {
        RedisOptions(
            connectLimit: .seconds(20),
            readLimit: .seconds(20),
            oldestReplyLimit: .seconds(20)
        )
    }
}

extension FleetSurroundings.Patience {
    /// The patience for these clients.
    fileprivate static var patient: Self {
        var patience = Self()
        patience.replyLimit = .seconds(20)
        patience.spentNanosecondsMax = 20_000_000_000
        patience.waitNanosecondsMax = 60_000_000_000
        return patience
    }
}
