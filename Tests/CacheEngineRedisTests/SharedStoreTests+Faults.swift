import CacheEngine
import CacheTestSupport
import Platform
import RESP
import RedisTestSupport
import Testing

@testable import CacheEngineRedis

/// Lost leaders, a stopped or full server, and damaged records.
extension SharedStoreTests {
    /// R5 and R6: a leader that is lost in its body costs one more request, and its half body is
    /// nobody's.
    @Test func lostLeaderCostsOneMoreRequest() async throws {
        let redis = try await RedisProcess()
        let relay = try Relay(to: redis.port)
        let origin = HeldOrigin()
        let lost = try await Machine.sharing(relay.url, origin)
        let here = try await Machine.sharing(redis.url, origin)
        async let first = lost.answer("/1")
        #expect(await eventually { origin.count == 1 })
        let half = ManualBody()
        origin.exchanges[0].answer(body: half)
        half.feed("ha")
        async let second = here.answer("/1").body.collectText()
        #expect(await eventually { await here.counts.sharedWaits == 1 })
        relay.cut()
        #expect(await eventually { origin.count == 2 })
        origin.exchanges[1].answer(body: "whole")
        #expect(try await second == "whole")
        half.fail(CacheError(.originFailed, detail: "cut"))
        let body = try await first.body
        await #expect(throws: (any Error).self) { try await body.collectText() }
        #expect(origin.count == 2)
        await Self.end(lost, here)
    }

    /// R7: a leader whose lease is over replaces nothing.
    @Test func lateLeaderReplacesNothing() async throws {
        let redis = try await RedisProcess()
        let origin = HeldOrigin()
        let late = try await Machine.sharing(redis.url, origin)
        let here = try await Machine.sharing(redis.url, origin)
        async let first = late.answer("/1").body.collectText()
        #expect(await eventually { origin.count == 1 })
        // The lease is lost, as if its holder had been stopped for longer than it lasts.
        let keys = try await redis.command("KEYS", "ce1:test:*:l").elements ?? []
        try await redis.command("DEL", try #require(keys.first?.text))
        async let second = here.answer("/1").body.collectText()
        #expect(await eventually { origin.count == 2 })
        origin.exchanges[1].answer(body: "new")
        #expect(try await second == "new")
        #expect(await Self.published(here, 1))
        origin.exchanges[0].answer(body: "old")
        #expect(try await first == "old")
        #expect(await eventually { await late.counts.unpublished == 1 })
        let third = try await Machine.sharing(redis.url, origin)
        #expect(try await third.answer("/1").body.collectText() == "new")
        #expect(origin.count == 2)
        await Self.end(late, here, third)
    }

    /// R19 and R20 for misses: a store that does not answer delays a miss for a moment only.
    @Test func stoppedStoreDelaysMissesForAMoment() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await Machine.sharing(redis.url, origin)
        _ = try await here.version("/0")
        #expect(await Self.published(here, 1))
        redis.stop()
        var slowest: [Double] = []
        for number in 1...200 {
            let start = monotonicNanoseconds()
            #expect(try await here.version("/\(number)") == 0)
            slowest.append(Double(monotonicNanoseconds() - start) / 1e6)
        }
        slowest.sort()
        print("a miss while Redis is stopped: p50 \(slowest[100]), max \(slowest[199]) ms")
        // The first ones wait for 25 ms each, then the breaker is open.
        #expect(slowest[100] < 25)
        redis.resume()
        #expect(await here.isLinked())
        let before = await here.counts.published
        var number = 1_000
        #expect(
            await eventually {
                number += 1
                _ = try? await here.version("/\(number)")
                return await here.counts.published > before
            },
            "the store is used again"
        )
        await Self.end(here)
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
        await Self.end(here, there, third)
    }

    /// R23: a full server refuses records, and requests do not notice.
    @Test func fullServerRefusesRecords() async throws {
        let redis = try await RedisProcess("--maxmemory", "3mb")
        let origin = ScriptedOrigin { request, _ in
            var random = Self.random(for: request)
            let bytes = (0..<65_536).map { _ in UInt8.random(in: 0...255, using: &random) }
            return Self.response(fields: ["Cache-Control": "max-age=60"], body: bytes)
        }
        let here = try await Machine.sharing(redis.url, origin)
        for number in 0..<100 {
            let response = try await here.answer("/\(number)")
            #expect(try await response.body.collect(upTo: .megabytes(1)).count == 65_536)
        }
        #expect(await eventually { await here.counts.unpublished > 0 })
        #expect(await here.isLinked())
        await Self.end(here)
    }
}
