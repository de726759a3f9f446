import CacheTestSupport
import RESP

/// Three masters with a replica each, on loopback.
package final class RedisCluster {
    /// The servers; the first three were created as masters.
    package let servers: [RedisProcess]

    /// Starts the servers, and waits until they agree.
    package init() async throws {
        var servers: [RedisProcess] = []
        for _ in 0..<6 {
            let bus = try FreePort.next()
            servers.append(
                try await RedisProcess(
                    "--cluster-enabled",
                    "yes",
                    "--cluster-node-timeout",
                    "1000",
                    "--cluster-replica-validity-factor",
                    "0",
                    "--cluster-port",
                    "\(bus)"
                )
            )
        }
        self.servers = servers
        let addresses = servers.map { "127.0.0.1:\($0.port)" }
        try await RedisTool.run(
            ["--cluster", "create"] + addresses + ["--cluster-replicas", "1", "--cluster-yes"]
        )
        let isReady = await eventually {
            for server in servers {
                let state = try? await server.cli("cluster", "info")
                guard state?.contains("cluster_state:ok") == true,
                    state?.contains("cluster_known_nodes:6") == true,
                    state?.contains("cluster_size:3") == true
                else { return false }
            }
            let lines = try? await servers[0].cli("cluster", "nodes")
            return lines?.split(separator: "\n").filter { $0.contains("slave") }.count == 3
        }
        guard isReady else { throw RedisFailure("The cluster is not ready") }
    }

    /// The URL of a fleet, with two of the servers as seeds.
    package var url: String {
        "redis://127.0.0.1:\(servers[0].port),127.0.0.1:\(servers[1].port)/test"
    }

    /// The server that has the slot of a key now.
    package func master(of key: String) async throws -> RedisProcess {
        let slot = Int(KeySlot.slot(of: Array(key.utf8)))
        for server in servers {
            guard let lines = try? await server.cli("cluster", "nodes") else {
                continue
            }
            for line in lines.split(separator: "\n") where !line.contains("fail") {
                let words = line.split(separator: " ")
                let holds = words.dropFirst(8).contains { range in
                    let ends = range.split(separator: "-").compactMap { Int($0) }
                    return ends.count == 2 ? (ends[0]...ends[1]).contains(slot) : ends == [slot]
                }
                let port = words.dropFirst().first?.split(separator: "@").first?
                    .split(separator: ":").last
                let found = servers.first { "\($0.port)" == port.map(String.init) }
                if holds, let found { return found }
            }
        }
        throw RedisFailure("No server has the slot of \(key)")
    }

    /// Moves that many slots from one server to another, once all servers agree whose each slot is.
    package func move(slots: Int, from source: RedisProcess, to target: RedisProcess) async throws {
        let identities = try await [
            source.cli("cluster", "myid"),
            target.cli("cluster", "myid"),
        ].map { $0.filter { !$0.isNewline } }
        let address = "127.0.0.1:\(source.port)"
        let isAgreed = await eventually {
            (try? await RedisTool.run(["--cluster", "check", address])) != nil
        }
        guard isAgreed else { throw RedisFailure("The servers of the cluster do not agree") }
        try await RedisTool.run([
            "--cluster", "reshard", address, "--cluster-from", identities[0],
            "--cluster-to", identities[1], "--cluster-slots", "\(slots)", "--cluster-yes",
        ])
    }
}
