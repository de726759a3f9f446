import CacheTestSupport
import Foundation
import Platform
import RESP
import Testing

/// Three masters with a replica each, on loopback.
final class RedisCluster {
    private static let cli = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]
        .map { "\($0)/redis-cli" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    static let isInstalled = RedisProcess.isInstalled && cli != nil

    /// The servers; the first three were created as masters.
    let servers: [RedisProcess]

    /// Starts the servers, and waits until they agree.
    init() async throws {
        var servers: [RedisProcess] = []
        for _ in 0..<6 {
            let bus = try LoopbackSocket.freePort()
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
        try await run(
            ["--cluster", "create"] + addresses + ["--cluster-replicas", "1", "--cluster-yes"]
        )
        let isReady = await eventually {
            for server in servers {
                let state = try? await run(["-p", "\(server.port)", "cluster", "info"])
                guard state?.contains("cluster_state:ok") == true,
                    state?.contains("cluster_known_nodes:6") == true,
                    state?.contains("cluster_size:3") == true
                else { return false }
            }
            let lines = try? await run(["-p", "\(servers[0].port)", "cluster", "nodes"])
            return lines?.split(separator: "\n").filter { $0.contains("slave") }.count == 3
        }
        try #require(isReady)
    }

    /// The URL of a fleet, with two of the servers as seeds.
    var url: String { "redis://127.0.0.1:\(servers[0].port),127.0.0.1:\(servers[1].port)/test" }

    /// The server that has the slot of a key now.
    func master(of key: String) async throws -> RedisProcess {
        let slot = Int(KeySlot.slot(of: Array(key.utf8)))
        for server in servers {
            guard let lines = try? await run(["-p", "\(server.port)", "cluster", "nodes"]) else {
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
        throw LoopbackSocket.Failure()
    }

    /// Moves that many slots from one server to another.
    func move(slots: Int, from source: RedisProcess, to target: RedisProcess) async throws {
        let identities = try await [
            run(["-p", "\(source.port)", "cluster", "myid"]),
            run(["-p", "\(target.port)", "cluster", "myid"]),
        ].map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
        try await run([
            "--cluster", "reshard", "127.0.0.1:\(source.port)", "--cluster-from", identities[0],
            "--cluster-to", identities[1], "--cluster-slots", "\(slots)", "--cluster-yes",
        ])
    }

    /// The output of redis-cli.
    @discardableResult
    private func run(_ words: [String]) async throws -> String {
        guard let cli = Self.cli else { throw LoopbackSocket.Failure() }
        let (status, text) = await PlainThread.run { () -> (Int32, String) in
            let process = Process()
            process.executableURL = URL(filePath: cli)
            process.arguments = words
            let output = Pipe()
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            do { try process.run() } catch { return (-1, "") }
            let data = (try? output.fileHandleForReading.readToEnd()) ?? Data()
            process.waitUntilExit()
            return (process.terminationStatus, String(decoding: data, as: UTF8.self))
        }
        guard status == 0 else { throw LoopbackSocket.Failure() }
        return text
    }
}
