import CacheEngine
import CacheTestSupport
import RESP
import RedisClient
import RedisTestSupport
import Synchronization
import Testing

@testable import CacheEngineRedis

/// Records that are damaged, foreign or of another version.
extension SharedStoreTests {
    /// The bytes behind one key of a server.
    private struct Item {
        let client: RedisClient
        let key: String

        /// The record of a path that one machine has published.
        init(_ redis: RedisProcess) async throws {
            client = try RedisClient(RedisURL(redis.url), RedisOptions(readLimit: .seconds(5)))
            let keys = try await redis.command("KEYS", "ce1:test:*").elements ?? []
            let records = keys.compactMap(\.text).filter { !$0.contains("{log}") }
            key = try #require(records.first)
            #expect(records.count == 1)
        }

        func bytes() async throws -> [UInt8] {
            try #require(try await client.send(RESPCommand("GET", key: key)).bytes)
        }

        func set(_ bytes: [UInt8]) async throws {
            var command = RESPCommand("SET", key: key)
            command.add(bytes)
            command.add("PX")
            command.add(60_000)
            _ = try await client.send(command)
        }
    }

    /// R21: a damaged or foreign record is a miss.
    @Test func damagedRecordIsAMiss() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await Machine.sharing(redis.url, origin)
        for path in ["/1", "/2"] { _ = try await here.version(path) }
        #expect(await Self.published(here, 2))
        let keys = try await redis.command("KEYS", "ce1:test:*").elements ?? []
        let records = keys.compactMap(\.text).filter { !$0.contains("{log}") }
        #expect(records.count == 2)
        // The record of one key under the name of the other.
        try await redis.command("COPY", records[0], records[1], "REPLACE")
        let there = try await Machine.sharing(redis.url, origin)
        for path in ["/1", "/2"] { #expect(try await there.version(path) == 0) }
        #expect(await there.counts.sharedHits == 1)
        #expect(await Self.published(there, 1))
        try await redis.command("SETRANGE", records[0], "60", "zzzz")
        try await redis.command("SET", records[1], "nonsense")
        let third = try await Machine.sharing(redis.url, origin)
        for path in ["/1", "/2"] { #expect(try await third.version(path) == 0) }
        #expect(await third.counts.sharedUnreadable >= 2)
        #expect(await third.counts.sharedHits == 0)
        // A damaged record is replaced.
        #expect(await Self.published(third, 2))
        await Self.end(here, there, third)
    }

    /// R21: whichever byte of a record is flipped in Redis, a look finds nothing.
    @Test func recordWithAnyByteFlippedIsAMiss() async throws {
        let redis = try await RedisProcess()
        let origin = ScriptedOrigin { request, _ in
            var random = Self.random(for: request)
            let body = (0..<3_800).map { _ in UInt8.random(in: 0...255, using: &random) }
            return Self.response(fields: ["Cache-Control": "max-age=60"], body: body)
        }
        let here = try await Machine.sharing(redis.url, origin)
        _ = try await here.answer("/1")
        #expect(await Self.published(here, 1))
        let item = try await Item(redis)
        let bytes = try await item.bytes()
        let record = try #require(SharedRecord(bytes))
        let time = FleetTime()
        time.note(try await item.client.send(RESPCommand("TIME")))
        let counts = FleetCounts()
        let store = SharedStore(
            item.client,
            namespace: "test",
            FleetSurroundings(patience: .ofATest),
            time,
            counts
        )
        store.begin(log: record.log, floor: 0, [], 0)
        let key = SharedKey(bytes: record.entry.key.bytes, resource: record.entry.key.bytes)
        let clock = SystemClock()
        func isFound() async -> Bool {
            var budget = store.budget(startedNanoseconds: clock.monotonicNanoseconds)
            switch await store.look(key, clock, &budget, { $0.filed(under: record.entry.key) }) {
            case .found(let entry):
                #expect(entry.serialized == record.entry.serialized)
                return true
            case .lead(let lease, _):
                store.end(lease, .failed)
                return false
            case .alone: return false
            }
        }
        #expect(await isFound())
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 1 << (index % 8)
            try await item.set(damaged)
            #expect(await !isFound(), "byte \(index)")
        }
        try await item.set(bytes)
        #expect(await isFound())
        print("\(bytes.count) bytes flipped, one after another")
        #expect(bytes.count > 3_900)
        #expect(counts.sharedUnreadable.load(ordering: .relaxed) >= bytes.count)
        await Self.end(here)
    }

    /// R22: records of another version have other names, and both versions keep theirs; bytes of
    /// another version under a name of this one are damage.
    @Test func recordOfAnotherVersionStays() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await Machine.sharing(redis.url, origin)
        _ = try await here.version("/1")
        #expect(await Self.published(here, 1))
        let item = try await Item(redis)
        let version = "}:\(SharedRecord.version):"
        #expect(item.key.contains(version))
        let other = item.key.replacing(version, with: "}:1:")
        try await redis.command("SET", other, "CEF1 another version's", "PX", "60000")
        try await redis.command("DEL", item.key)
        let there = try await Machine.sharing(redis.url, origin)
        #expect(try await there.version("/1") == 0)
        #expect(await Self.published(there, 1))
        #expect(origin.count == 2)
        #expect(await there.counts.sharedUnreadable == 0)
        #expect(try await redis.command("GET", other).text == "CEF1 another version's")
        var bytes = try await item.bytes()
        bytes[3] = UInt8(ascii: "1")
        try await item.set(bytes)
        let third = try await Machine.sharing(redis.url, origin)
        #expect(try await third.version("/1") == 0)
        #expect(await Self.published(third, 1))
        #expect(await third.counts.sharedUnreadable >= 1)
        #expect(SharedRecord(try await item.bytes()) != nil)
        await Self.end(here, there, third)
    }

    /// Another version has other keys, and a program may have used ours for something else: service
    /// goes on, and the reason is named.
    @Test func keyOfAnotherKindIsNamedAndServiceGoesOn() async throws {
        let redis = try await RedisProcess()
        for name in ["ce1:test:{log}:meta", "ce1:test:{log}:s"] {
            try await redis.command("SET", name, "another program's")
        }
        try await redis.command("SET", "ce2:test:{log}:meta", "a later version's")
        let events = Mutex<[String]>([])
        let origin = VersionedOrigin()
        let machine = try await Machine(redis.url, origin) { event in
            if case .fleetFailed(let error) = event { events.withLock { $0.append("\(error)") } }
        }
        for _ in 0..<10 { #expect(try await machine.version("/1") == 0) }
        #expect(origin.count == 1)
        let error = await #expect(throws: CacheError.self) {
            try await machine.cache.purge(tag: "x")
        }
        #expect(error?.code == .purgeNotShared)
        #expect(error?.detail.contains("WRONGTYPE") == true, "\(error?.detail ?? "")")
        #expect(await eventually { events.withLock { $0 }.contains { $0.contains("WRONGTYPE") } })
        // Once, not with each attempt.
        await pause(milliseconds: 300)
        let told = events.withLock { $0 }
        #expect(told.count == 1, "\(told)")
        #expect(try await redis.command("GET", "ce1:test:{log}:s").text == "another program's")
        await machine.cache.shutDown()
    }
}
