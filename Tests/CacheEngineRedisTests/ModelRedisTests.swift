import CacheTestSupport
import RESP
import RedisClient
import RedisTestSupport
import Simulation
import Testing

@testable import CacheEngineRedis

/// The model of Redis, against a real server: the same commands get the same replies.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(2)),
    .serialized
)
struct ModelRedisTests {
    private static let keys = LogKeys(namespace: "t")
    private static let log = [keys.meta, keys.stream]
    private static let records = ["ce1:t:{a}:b", "ce1:t:{a}:c"]

    @Test func modelRepliesAsTheServerDoes() async throws {
        let redis = try await RedisProcess()
        let client = try RedisClient(RedisURL(redis.url), RedisOptions(readLimit: .seconds(5)))
        var kinds: Set<String> = []
        for seed in 0..<UInt64(FleetRounds.scaled(30, to: 1_000)) {
            var random = SeededRandom(seed: seed)
            let model = ModelRedis(TestClock(), replicas: 0)
            for words in [["FLUSHALL"], ["SCRIPT", "FLUSH"]] {
                try await Self.run(words, on: client)
            }
            for step in 0..<120 {
                if Int.random(in: 0..<15, using: &random) == 0 {
                    try await Self.disturb(model, client, &random)
                    continue
                }
                let command = Self.command(&random)
                let own = model.run(command.parsedWords)
                let real = try await client.together([command], by: [])[0]
                let words = command.parsedWords.map { String(decoding: $0, as: UTF8.self) }
                kinds.insert("\(words[0]) \(Self.plain(real))".prefix(20).description)
                #expect(
                    Self.plain(own) == Self.plain(real),
                    "seed \(seed), step \(step): \(words)"
                )
                guard Self.plain(own) == Self.plain(real) else { return }
            }
            try await Self.calm(model, client)
        }
        // The replies are not all of one kind.
        #expect(kinds.count > 20, "\(kinds.sorted())")
        await client.shutDown()
    }

    /// The model's own clock ends leases and records.
    @Test func recordsEndByTheClock() {
        let clock = TestClock()
        let model = ModelRedis(clock)
        func run(_ words: String...) -> RESPValue { model.run(words.map { Array($0.utf8) }) }
        #expect(run("SET", "a", "1", "NX", "PX", "3000").text == "OK")
        clock.advance(seconds: 2.9)
        #expect(run("SET", "a", "2", "NX", "PX", "3000") == .nilBulk)
        #expect(run("PEXPIRE", "a", "3000") == .integer(1))
        clock.advance(seconds: 2.9)
        #expect(run("GET", "a").text == "1")
        clock.advance(seconds: 0.2)
        #expect(run("GET", "a") == .nilBulk && run("EXISTS", "a") == .integer(0))
    }

    // MARK: The same disturbance on both

    private static func disturb(
        _ model: ModelRedis,
        _ client: RedisClient,
        _ random: inout SeededRandom
    ) async throws {
        let number = Int.random(in: 0..<7, using: &random)
        switch number {
        case 0:
            model.forgetScripts()
            try await run(["SCRIPT", "FLUSH"], on: client)
        // A replica would refuse these two.
        case 1 where !model.mood.isReadOnly:
            let count = Int.random(in: 0..<4, using: &random)
            model.trim(to: count)
            try await run(["XTRIM", log[1], "MAXLEN", "\(count)"], on: client)
        case 2 where !model.mood.isReadOnly:
            model.flush()
            try await run(["FLUSHALL"], on: client)
        case 3, 4:
            model.mood.isFull = number == 3
            let bytes = number == 3 ? "1" : "0"
            try await run(["CONFIG", "SET", "maxmemory", bytes], on: client)
        default:
            model.mood.isReadOnly = number == 5
            // Port 1 answers nobody, so the server keeps its data.
            let master = number == 5 ? ["127.0.0.1", "1"] : ["NO", "ONE"]
            try await run(["REPLICAOF"] + master, on: client)
        }
    }

    private static func calm(_ model: ModelRedis, _ client: RedisClient) async throws {
        model.mood = ModelRedis.Mood()
        try await run(["CONFIG", "SET", "maxmemory", "0"], on: client)
        try await run(["REPLICAOF", "NO", "ONE"], on: client)
    }

    private static func run(_ words: [String], on client: RedisClient) async throws {
        var command = RESPCommand("EVAL")
        switch words[0] {
        case "FLUSHALL": command = RESPCommand("FLUSHALL")
        case "SCRIPT": command = RESPCommand("SCRIPT")
        case "XTRIM": command = RESPCommand("XTRIM")
        case "CONFIG": command = RESPCommand("CONFIG")
        default: command = RESPCommand("REPLICAOF")
        }
        for word in words.dropFirst() { command.add(word) }
        _ = try await client.together([command], by: [])
    }

    /// A reply without the end of an error's text, which names the server's place in a script.
    private static func plain(_ reply: RESPValue) -> RESPValue {
        guard case .error(let text) = reply else { return reply }
        return .error(String(text.prefix { $0 != " " }))
    }

    // MARK: Commands

    /// One of the commands that a machine sends, with few keys and values, so that they meet.
    private static func command(_ random: inout SeededRandom) -> RESPCommand {
        func number(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
        let record = records[number(2)]
        let token = ["", "token-1", "token-2"][number(3)]
        let position = "\(number(4))-\(number(4))"
        func words(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }
        func script(_ script: FleetScript, _ keys: [String], _ words: [[UInt8]]) -> RESPCommand {
            script.command(keys.map { Array($0.utf8) }, isWhole: number(3) == 0, words)
        }
        let pair = [record, record + ":l"]
        let id = FleetPurge.ID(number(9)).bytes
        switch number(20) {
        case 0: return RESPCommand("GET", key: pair[number(2)])
        case 1: return RESPCommand("SET", key: pair[1], token, "NX", "PX", "300000")
        case 2: return RESPCommand("DEL", key: (pair + log)[number(4)])
        case 3: return RESPCommand("EXISTS", key: record)
        case 4: return RESPCommand("PEXPIRE", key: pair[number(2)], "300000")
        case 5: return RESPCommand("HMGET", key: log[0], "inc", "last", "none")
        case 6:
            var read = RESPCommand("XREAD", key: nil, "COUNT", "\(1 + number(3))", "STREAMS")
            read.add(key: log[1])
            read.add(position)
            return read
        case 7:
            let bounds = [("-", "+"), (position, position), ("(" + position, "+")][number(3)]
            return RESPCommand("XRANGE", key: log[1], bounds.0, bounds.1, "COUNT", "3")
        case 8: return RESPCommand("XREVRANGE", key: log[1], "+", "-", "COUNT", "2")
        case 9, 10: return script(.open, log, [id, number(2) == 0 ? [] : Array(position.utf8)])
        case 11, 12, 13:
            let seen = words("\(number(3))", "65536")
            let purge = words(["h", "s"][number(2)], "t", "tag")
            return script(.append, log, [id] + seen + [id] + purge)
        case 14:
            let rest = words(token, "record \(number(9))", "300000", "\(number(2))")
            return script(.publish, pair, rest)
        case 15: return script(.forget, pair, words("300000"))
        case 16: return RESPCommand("HSET", key: keys.machines, "m", "\(number(3))")
        case 17: return RESPCommand("HGETALL", key: keys.machines)
        case 18: return RESPCommand("HDEL", key: keys.machines, "m", "n")
        default:
            let step = ["keep", "free", "skip"][number(3)]
            return script(.lease, pair, words(token, step, "300000"))
        }
    }
}
