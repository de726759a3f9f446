import RESP
import Synchronization

@testable import RedisClient

/// Servers that share the slots of a cluster, and redirect as a test says.
final class FakeCluster: Sendable {
    struct State: Sendable {
        var ports: [UInt16] = []
        /// The server of each key; other keys are at the first server.
        var owners: [String: Int] = [:]
        /// The server that a key is being moved to.
        var askedAt: [String: Int] = [:]
        /// The servers that CLUSTER SLOTS names, each for an equal part of the slots.
        var named: [Int] = [0]
        /// Each command, behind the number of its server.
        var commands: [String] = []
        /// Every command is redirected to the next server.
        var redirectsForEver = false

        /// The questions for the slots so far.
        var questions: [String] { commands.filter { $0.hasSuffix("CLUSTER SLOTS") } }

        mutating func reply(_ words: [String], at server: Int, _ isAsking: inout Bool) -> String {
            commands.append("\(server): " + words.joined(separator: " "))
            if words == ["CLUSTER", "SLOTS"] { return slots }
            let wasAsking = isAsking
            isAsking = words == ["ASKING"]
            if isAsking { return "+OK\r\n" }
            if words[0] == "WAIT" { return ":\(server)\r\n" }
            let key = words[1]
            if redirectsForEver { return redirection("MOVED", key, to: (server + 1) % ports.count) }
            if askedAt[key] == server, wasAsking { return "+\(server)\r\n" }
            let owner = owners[key] ?? 0
            if owner != server { return redirection("MOVED", key, to: owner) }
            if let next = askedAt[key] { return redirection("ASK", key, to: next) }
            return "+\(server)\r\n"
        }

        private func redirection(_ word: String, _ key: String, to server: Int) -> String {
            let slot = KeySlot.slot(of: Array(key.utf8))
            return "-\(word) \(slot) 127.0.0.1:\(ports[server])\r\n"
        }

        private var slots: String {
            let width = KeySlot.count / named.count
            return named.enumerated().reduce("*\(named.count)\r\n") { text, entry in
                let last =
                    entry.offset == named.count - 1
                    ? KeySlot.count - 1 : (entry.offset + 1) * width - 1
                return text + "*3\r\n:\(entry.offset * width)\r\n:\(last)\r\n"
                    + "*2\r\n$9\r\n127.0.0.1\r\n:\(ports[entry.element])\r\n"
            }
        }
    }

    /// What the servers use; it exists before them.
    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    private let shared = Shared()
    let servers: [FakeServer]

    init(_ count: Int) throws {
        servers = try (0..<count).map { [shared] number in
            try FakeServer { connection in
                var isAsking = false
                connection.serve { words in
                    shared.state.withLock { $0.reply(words, at: number, &isAsking) }
                }
            }
        }
        shared.state.withLock { [servers] in $0.ports = servers.map(\.port) }
    }

    func client(seed: Int = 0, _ options: RedisOptions = .patient) throws -> RedisClient {
        try RedisClient("redis-cluster://127.0.0.1:\(servers[seed].port)", options)
    }

    func change(_ change: (inout State) -> Void) { shared.state.withLock { change(&$0) } }

    var current: State { shared.state.withLock { $0 } }
}
