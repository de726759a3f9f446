import CacheEngine
import CacheTestSupport
import Platform
import RESP
import RedisTestSupport
import Testing

@testable import CacheEngineRedis

/// Lost leaders, a stopped or full server, and damaged records.
extension SharedStoreTests {
    /// R5 and R6: a leader that is lost before its head or in its body costs one more request, its
    /// half body is nobody's, and nobody waits for longer than the lease lasts.
    @Test(arguments: [false, true])
    func lostLeaderCostsOneMoreRequest(inBody: Bool) async throws {
        let redis = try await RedisProcess()
        let relay = try Relay(to: redis.port)
        let origin = HeldOrigin()
        let lost = try await Machine.sharing(relay.url, origin)
        let here = try await Machine.sharing(redis.url, origin)
        let first = Task { try await lost.answer("/1") }
        #expect(await eventually { origin.count == 1 })
        let half = ManualBody()
        if inBody {
            origin.exchanges[0].answer(body: half)
            half.feed("ha")
        }
        let others = (0..<50).map { _ in
            Task { try await here.answer("/1").body.collectText() }
        }
        #expect(await eventually { await here.counts.sharedWaits == 1 })
        let start = monotonicNanoseconds()
        relay.cut()
        #expect(await eventually { origin.count == 2 })
        let waited = monotonicNanoseconds() - start
        print("a lost leader's place was taken after \(waited / 1_000_000) ms")
        #expect(waited < 10_000_000_000)
        // Neither the lost leader's lease nor a part of its body is a record.
        let records = try await redis.command("KEYS", "ce1:test:{????????????????}:*").elements
        #expect(records?.allSatisfy { $0.text?.hasSuffix(":l") == true } == true)
        origin.exchanges[1].answer(body: "whole")
        for other in others { #expect(try await other.value == "whole") }
        if inBody {
            half.fail(CacheError(.originFailed, detail: "cut"))
            let body = try await first.value.body
            await #expect(throws: (any Error).self) { try await body.collectText() }
        } else {
            origin.exchanges[0].fail(CacheError(.originFailed, detail: "cut"))
            await #expect(throws: (any Error).self) { try await first.value }
        }
        #expect(origin.count == 2)
        await Self.end(lost, here)
    }

    /// A body that breaks off ends the lease alone: the key is not given up.
    @Test func brokenBodyLetsTheNextMachineLead() async throws {
        let redis = try await RedisProcess()
        let origin = HeldOrigin()
        let here = try await Machine.sharing(redis.url, origin)
        let there = try await Machine.sharing(redis.url, origin)
        let first = Task { try await here.answer("/1").body.collectText() }
        #expect(await eventually { origin.count == 1 })
        let half = ManualBody()
        origin.exchanges[0].answer(body: half)
        half.feed("ha")
        half.fail(CacheError(.originFailed, detail: "cut"))
        await #expect(throws: (any Error).self) { try await first.value }
        // Sooner than a key that is given up becomes free.
        let isFree = await eventually(seconds: 3) {
            let keys = try? await redis.command("KEYS", "ce1:test:{????????????????}:*")
            return keys?.elements?.isEmpty == true
        }
        #expect(isFree)
        let second = Task { try await there.answer("/1").body.collectText() }
        #expect(await eventually { origin.count == 2 })
        origin.exchanges[1].answer(body: "whole")
        #expect(try await second.value == "whole")
        #expect(try await here.answer("/1").body.collectText() == "whole")
        #expect(origin.count == 2)
        await Self.end(here, there)
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
        for key in try await redis.command("KEYS", "ce1:test:*:l").elements ?? [] {
            try await redis.command("DEL", try #require(key.text))
        }
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
        let here = try await Machine.sharing(
            redis.url,
            origin,
            patience: FleetSurroundings.Patience()
        )
        _ = try await here.version("/0")
        #expect(await Self.published(here, 1))
        redis.stop()
        var slowest: [Double] = []
        var waits = 0
        for number in 1...200 {
            if await !here.counts.isStoreSuspended { waits += 1 }
            let start = monotonicNanoseconds()
            #expect(try await here.version("/\(number)") == 0)
            slowest.append(Double(monotonicNanoseconds() - start) / 1e6)
        }
        slowest.sort()
        print("a miss while Redis is stopped: p50 \(slowest[100]), max \(slowest[199]) ms")
        // The first ones wait for 25 ms each; then the breaker is open, and no miss asks the store.
        #expect(waits < 50, "\(slowest)")
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

    /// R23: a full server refuses or evicts records; requests do not notice, and the log stays.
    @Test(arguments: ["noeviction", "volatile-lfu"])
    func fullServerRefusesRecords(policy: String) async throws {
        let megabytes = FleetRounds.scaled(6, to: 64)
        let redis = try await RedisProcess(
            "--maxmemory",
            "\(megabytes)mb",
            "--maxmemory-policy",
            policy
        )
        let origin = ScriptedOrigin { request, _ in
            var random = Self.random(for: request)
            let bytes = (0..<8_192).flatMap { _ in
                withUnsafeBytes(of: random.next()) { Array($0) }
            }
            return Self.response(fields: ["Cache-Control": "max-age=60"], body: bytes)
        }
        let here = try await Machine.sharing(redis.url, origin)
        // Sixteen times what the server holds.
        let count = megabytes * 16 * 16
        for number in 0..<count {
            let response = try await here.answer("/\(number)")
            #expect(try await response.body.collect(upTo: .megabytes(1)).count == 65_536)
        }
        let evicted = try await redis.info("evicted_keys", in: "stats").flatMap { Int($0) } ?? 0
        let counts = await here.counts
        print("\(policy): \(count) stored, \(counts.unpublished) refused, \(evicted) evicted")
        #expect(policy == "noeviction" ? counts.unpublished > 0 : evicted > 0)
        #expect(await here.isLinked())
        let keys = try await redis.command("KEYS", "*").elements?.compactMap(\.text) ?? []
        #expect(keys.contains("ce1:test:{log}:meta"))
        for key in keys where !key.contains("{log}") {
            let expiry = try await redis.command("PTTL", key).integer
            #expect(expiry ?? 0 > 0 || expiry == -2, "\(key)")
        }
        await Self.end(here)
    }
}
