import CacheTestSupport
import Platform
import RESP
import RedisTestSupport
import Testing

@testable import RedisClient

/// The client against a real cluster of three masters.
@Suite(
    .serialized,
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(2))
)
struct RealClusterTests {
    /// Starts masters that share the slots in equal parts, and count each other as lost after
    /// `timeoutMilliseconds`.
    private func startedCluster(timeoutMilliseconds: Int = 5_000) async throws -> [RedisProcess] {
        let buses = try (0..<3).map { _ in "\(try FreePort.next())" }
        let timeout = ["--cluster-node-timeout", "\(timeoutMilliseconds)"]
        var servers: [RedisProcess] = []
        for bus in buses {
            let words = ["--cluster-enabled", "yes"] + timeout
            servers.append(try await RedisProcess(words + ["--cluster-port", bus]))
        }
        for (number, server) in servers.enumerated() {
            let last = number == 2 ? KeySlot.count - 1 : (number + 1) * 5_461 - 1
            try await server.cli("CLUSTER", "ADDSLOTSRANGE", "\(number * 5_461)", "\(last)")
            try await server.cli(
                "CLUSTER",
                "MEET",
                "127.0.0.1",
                "\(servers[0].port)",
                buses[0]
            )
        }
        for server in servers {
            let isReady = await eventually {
                let state = try? await server.cli("CLUSTER", "INFO")
                return state?.contains("cluster_state:ok") == true
                    && state?.contains("cluster_known_nodes:3") == true
            }
            try #require(isReady)
        }
        return servers
    }

    @Test func keysOfAllMastersAreWrittenAndRead() async throws {
        let servers = try await startedCluster()
        let client = try RedisClient("redis-cluster://\(servers[1].address)")
        let written = try await client.replies(
            (0..<2_000).map { RESPCommand("SET", key: "k\($0)", "v\($0)") }
        )
        #expect(written == Array(repeating: .simple("OK"), count: 2_000))
        for number in 0..<2_000 where number % 20 == 0 {
            let value = try await client.send(RESPCommand("GET", key: "k\(number)"))
            #expect(value.text == "v\(number)")
        }
        // All slots are known now: no command is redirected.
        let redirections = client.counts.redirections
        let read = try await client.replies((0..<2_000).map { RESPCommand("GET", key: "k\($0)") })
        #expect(read.map(\.text) == (0..<2_000).map { "v\($0)" })
        #expect(client.counts.redirections == redirections)
        #expect(client.counts.failures == 0)
        withExtendedLifetime(servers) {}
    }

    @Test func slotThatIsBeingMovedIsServed() async throws {
        let servers = try await startedCluster()
        let client = try RedisClient("redis-cluster://\(servers[0].address)")
        // The slot of {a}1 and {a}2 is 15495, at the third master.
        let (source, target) = (servers[2], servers[0])
        #expect(try await client.send(RESPCommand("SET", key: "{a}1", "old")) == .simple("OK"))
        let move = try await Move(of: "a", from: source, to: target)
        // A key that is there still is served there; a new one is asked for at the target.
        #expect(try await client.send(RESPCommand("GET", key: "{a}1")).text == "old")
        #expect(try await client.send(RESPCommand("SET", key: "{a}2", "new")) == .simple("OK"))
        #expect(try await client.send(RESPCommand("GET", key: "{a}2")).text == "new")
        let both = RESPCommand("MGET", key: "{a}1", "{a}2")
        #expect(await client.code(of: both) == .tryAgain)
        #expect(try await move.migrate("{a}1").hasPrefix("OK"))
        try await move.finish()
        #expect(try await client.send(both).elements?.map(\.text) == ["old", "new"])
        #expect(client.counts.failures == 0)
    }

    /// A group whose keys are at both servers: what it writes at one must not be written at the other.
    @Test func groupOfASlotThatIsBeingMovedIsServedWhereItsKeysAre() async throws {
        let servers = try await startedCluster()
        let client = try RedisClient("redis-cluster://\(servers[0].address)")
        for key in ["{a}lease", "{a}record"] {
            #expect(try await client.send(RESPCommand("SET", key: key, "first")) == .simple("OK"))
        }
        let move = try await Move(of: "a", from: servers[2], to: servers[0])
        #expect(try await move.migrate("{a}record").hasPrefix("OK"))
        let group = [
            RESPCommand("SET", key: "{a}lease", "second", "NX"),
            RESPCommand("GET", key: "{a}record"), RESPCommand("GET", key: "{a}lease"),
        ]
        for isMoved in [false, true] {
            if isMoved {
                // The target refuses a key that it has.
                #expect(try await move.migrate("{a}lease").hasPrefix("OK"))
                try await move.finish()
            }
            let replies = try await client.together(group, by: Array("{a}".utf8))
            #expect(replies.map(\.text) == [nil, "first", "first"])
        }
        withExtendedLifetime(servers) {}
    }

    @Test func lostMasterIsATypedErrorAndTheOthersServe() async throws {
        let servers = try await startedCluster(timeoutMilliseconds: 1_000)
        let client = try RedisClient("redis-cluster://\(servers[0].address)")
        #expect(await client.code() == nil)
        servers[2].kill()
        // The key of another master: a cluster without all slots serves none.
        let isDown = await eventually {
            await client.code(of: RESPCommand("GET", key: "b")) == .clusterDown
        }
        #expect(isDown)
        try await servers[2].start()
        let isUsed = await eventually {
            for key in ["k1", "{a}", "b"] {
                guard await client.code(of: RESPCommand("GET", key: key)) == nil else {
                    return false
                }
            }
            return true
        }
        #expect(isUsed)
        withExtendedLifetime(servers) {}
    }
}

/// A slot on its way from one master to another.
private struct Move {
    private let slot: String
    private let source: RedisProcess
    private let target: RedisProcess
    private let targetIdentity: String

    /// Begins to move the slot of a key.
    init(of key: String, from source: RedisProcess, to target: RedisProcess) async throws {
        slot = "\(KeySlot.slot(of: Array(key.utf8)))"
        (self.source, self.target) = (source, target)
        let identities = try await [source.cli("CLUSTER", "MYID"), target.cli("CLUSTER", "MYID")]
            .map { $0.filter { !$0.isNewline } }
        targetIdentity = identities[1]
        try await target.cli("CLUSTER", "SETSLOT", slot, "IMPORTING", identities[0])
        try await source.cli("CLUSTER", "SETSLOT", slot, "MIGRATING", identities[1])
    }

    /// Moves one key; returns the reply.
    func migrate(_ key: String) async throws -> String {
        try await source.cli("MIGRATE", "127.0.0.1", "\(target.port)", key, "0", "1000")
    }

    func finish() async throws {
        for server in [target, source] {
            try await server.cli("CLUSTER", "SETSLOT", slot, "NODE", targetIdentity)
        }
    }
}
