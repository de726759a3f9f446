import CacheEngine
import CacheTestSupport
import RESP
import RedisTestSupport
import Testing

@testable import CacheEngineRedis

/// Records that a purge or a request has ended are not read back.
extension SharedStoreTests {
    /// R9 and R10 for entries: no machine reads a purged response from the store.
    @Test(arguments: ["url", "tag", "everything"])
    func purgedRecordIsUsedNoMore(_ kind: String) async throws {
        let origin = VersionedOrigin()
        let (redis, here, there) = try await Self.twoMachines(origin)
        for round in 1...20 {
            _ = try await here.version("/1")
            origin.change("/1")
            try await there.purge(
                kind == "url"
                    ? .request(CacheRequest(url: Machine.host + "/1"))
                    : kind == "tag" ? .tag("tag1") : .everything
            )
            #expect(try await there.version("/1") == round)
            #expect(
                await eventually { (try? await here.version("/1")) == round },
                "the purge arrives"
            )
            let late = try await Machine.sharing(redis.url, origin)
            #expect(try await late.version("/1") == round)
            await late.cache.shutDown()
        }
        await Self.end(here, there)
    }

    @Test func responseOfAFetchThatAPurgeOverlapsIsNotShared() async throws {
        let origin = HeldOrigin()
        let (redis, here, there) = try await Self.twoMachines(origin)
        async let first = here.answer("/1").body.collectText()
        #expect(await eventually { origin.count == 1 })
        try await there.purge(.everything)
        #expect(await eventually { await here.counts.applied == 1 })
        origin.exchanges[0].answer(body: "old")
        #expect(try await first == "old")
        let third = try await Machine.sharing(redis.url, origin)
        async let second = third.answer("/1").body.collectText()
        #expect(await eventually { origin.count == 2 })
        origin.exchanges[1].answer(body: "new")
        #expect(try await second == "new")
        await Self.end(here, there, third)
    }

    /// A machine that starts later uses what is there, and knows the purges of before.
    @Test func machineThatStartsLaterReadsTheStore() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await Machine.sharing(redis.url, origin)
        for number in 0..<20 { _ = try await here.version("/\(number)") }
        #expect(await Self.published(here, 20))
        for number in 0..<10 {
            origin.change("/\(number)")
            try await here.purge(.tag("tag\(number)"))
        }
        let count = origin.count
        let later = try await Machine.sharing(redis.url, origin)
        for number in 0..<20 {
            #expect(try await later.version("/\(number)") == (number < 10 ? 1 : 0))
        }
        #expect(origin.count == count + 10)
        await Self.end(here, later)
    }

    /// R16: records of a log that was deleted are not used.
    @Test func recordsOfADeletedLogAreUsedNoMore() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await Machine.sharing(redis.url, origin)
        _ = try await here.version("/1")
        #expect(await Self.published(here, 1))
        try await redis.command("DEL", "ce1:test:{log}:s", "ce1:test:{log}:meta")
        #expect(await eventually { await here.counts.allMarkedStale > 0 })
        origin.change("/1")
        let later = try await Machine.sharing(redis.url, origin)
        #expect(try await later.version("/1") == 1)
        await Self.end(here, later)
    }

    /// An unsafe method removes the record, and this machine reads no older one.
    @Test func unsafeMethodRemovesTheRecord() async throws {
        let origin = VersionedOrigin()
        let (redis, here, there) = try await Self.twoMachines(origin)
        defer { withExtendedLifetime(redis) {} }
        _ = try await here.version("/1")
        #expect(await Self.published(here, 1))
        var post = CacheRequest(url: Machine.host + "/1")
        post.method = .post
        _ = try await there.cache.respond(to: post)
        origin.change("/1")
        #expect(try await there.version("/1") == 1)
        await Self.end(here, there)
    }

    /// The variants of a resource that a machine's own request has ended are not read back, although
    /// another machine publishes their index again.
    @Test func unsafeMethodEndsTheVariants() async throws {
        let redis = try await RedisProcess()
        let origin = ScriptedOrigin { request, number in
            .whole(
                fields: ["Cache-Control": "max-age=60", "Vary": "Accept"],
                body: "\(request.fields["Accept"] ?? "") \(number)"
            )
        }
        let here = try await Machine.sharing(redis.url, origin)
        let there = try await Machine.sharing(redis.url, origin)
        _ = try await here.answer("/1", ["Accept": "a"])
        #expect(await Self.published(here, 1))
        var post = CacheRequest(url: Machine.host + "/1")
        post.method = .post
        _ = try await there.cache.respond(to: post)
        // The time for which the key is given up ends.
        let isForgotten = await eventually {
            let keys = try? await redis.command("KEYS", "ce1:test:*:l").elements
            return keys?.isEmpty == false
        }
        #expect(isForgotten)
        for key in try await redis.command("KEYS", "ce1:test:*:l").elements ?? [] {
            try await redis.command("DEL", try #require(key.text))
        }
        _ = try await here.answer("/1", ["Accept": "b"])
        #expect(await Self.published(here, 2))
        let count = origin.count
        let response = try await there.answer("/1", ["Accept": "a"])
        #expect(try await response.body.collectText() == "a \(count + 1)")
        await Self.end(here, there)
    }

    /// The old variants of a URL that was purged softly are stale everywhere, though the machine that
    /// purged it keeps their index and shares it again.
    @Test func softPurgeOfAURLEndsTheVariantsEverywhere() async throws {
        let origin = ScriptedOrigin { request, number in
            .whole(
                fields: ["Cache-Control": "max-age=60", "Vary": "Accept"],
                body: "\(request.fields["Accept"] ?? "") \(number)"
            )
        }
        let (redis, here, there) = try await Self.twoMachines(origin)
        defer { withExtendedLifetime(redis) {} }
        let old = try await here.answer("/1", ["Accept": "a"]).body.collectText()
        #expect(await Self.published(here, 1))
        #expect(try await there.answer("/1", ["Accept": "a"]).info.tier == .shared)
        var request = CacheRequest(url: Machine.host + "/1")
        request.fields = ["Accept": "a"]
        // A response is shared only if its machine had read the purge before it asked the origin.
        let purge = try await here.cache.purge(
            .request(request),
            isSoft: true,
            waitingFor: .fleet
        )
        #expect(purge.receipt?.reach?.isComplete == true)
        #expect(await eventually { await there.counts.applied == 1 })
        _ = try await here.answer("/1", ["Accept": "b"])
        #expect(await Self.published(here, 2))
        #expect(try await there.answer("/1", ["Accept": "b"]).info.tier == .shared)
        let new = try await there.answer("/1", ["Accept": "a"]).body.collectText()
        #expect(new != old)
        await Self.end(here, there)
    }

    /// What a machine removes by a time or a class is not read back from the store.
    @Test func removalOfAClassHoldsOnItsMachine() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await Machine.sharing(redis.url, origin)
        _ = try await here.version("/1")
        #expect(await Self.published(here, 1))
        origin.change("/1")
        try await here.cache.removeAll(in: .storageClass(.permanent))
        #expect(try await here.version("/1") == 1)
        await Self.end(here)
    }
}
