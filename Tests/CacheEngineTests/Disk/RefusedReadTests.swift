import CacheTestSupport
import Dispatch
import HTTPCaching
import Testing

@testable import CacheEngine

/// A read that the pool refuses, because too many wait for the device, proves no absence.
@Suite(.timeLimit(.minutes(1))) struct RefusedReadTests {
    private let files = FaultyFileSystem(seed: 1)
    private let pool = IOPool(threadCount: 1, jobsMax: 2)
    private let gate = DispatchSemaphore(value: 0)

    /// A cache with one entry, which is on disk only; each read of it waits for the device.
    private func stage(body: String = "old") async throws -> Stage {
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=600", "ETag": "\"1\""],
            body: body
        )
        let stage = try await Stage(origin) {
            $0.memory = .disabled
            $0.backing = .disk(path: "/cache", capacity: .megabytes(64))
            $0.backing.fileSystem = .replaced(files)
            $0.backing.pool = pool
            $0.hooks.willStore = { $0.fields.contains("X-Refused") ? nil : $0 }
        }
        _ = try await stage.get()
        try await stage.cache.flush()
        files.plan.cold = 1_000
        return stage
    }

    /// Holds the pool's thread and fills its queue, so that reads are refused.
    private func stall() async throws {
        try await pool.hold(until: gate)
        while pool.submit({}) {}
    }

    /// Waits for the first refused read, and then lets the pool work on.
    private func releaseAfterARefusal(_ stage: Stage) async throws {
        let disk = try #require(stage.cache.services.tiers.backing as? DiskTier)
        #expect(await eventually { disk.statistics.readsRefused > 0 })
        gate.signal()
        while await pool.run({ true }) == nil { await Task.yield() }
    }

    /// The head of the response has left: its body waits like the others.
    @Test func bodyInAFileIsReadThoughReadsAreRefused() async throws {
        let body = String(repeating: "0123456789abcdef", count: 100_000)
        let stage = try await stage(body: body)
        let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        #expect(response.info.tier == .disk && response.body.availableChunk == nil)
        try await stall()
        async let whole = response.body.collect()
        for _ in 0..<1_000 { await Task.yield() }
        gate.signal()
        #expect(try await whole.text == body)
        await stage.end()
    }

    @Test(arguments: [false, true])
    func softPurgeOfAURLHoldsThoughReadsAreRefused(ofOneVariant: Bool) async throws {
        let stage = try await stage()
        try await stall()
        async let marking = Self.mark(stage.cache, oneVariant: ofOneVariant)
        try await releaseAfterARefusal(stage)
        let isMarked = try await marking
        #expect(isMarked)
        #expect(try await stage.get().source != .fresh)
        await stage.end()
    }

    private static func mark(_ cache: HTTPCache, oneVariant: Bool) async throws -> Bool {
        let request = CacheRequest(url: Stage.url)
        return oneVariant
            ? try await cache.markVariantStale(request) : try await cache.markStale(request)
    }

    /// The response cannot be marked as long as it cannot be read, so it is removed.
    @Test func softPurgeOfAURLHoldsThoughTheDeviceHangs() async throws {
        let stage = try await stage()
        let services = stage.cache.services
        let hash = try services.key(of: CacheRequest(url: Stage.url)).key.hash
        let disk = try #require(services.tiers.backing as? DiskTier)
        try await pool.hold(until: gate)
        async let purging = stage.cache.purge(.request(CacheRequest(url: Stage.url)), isSoft: true)
        let isForgotten = await eventually {
            stage.clock.advance(seconds: 0.05)
            return disk.currentToken(hash) == nil
        }
        #expect(isForgotten)
        #expect(disk.currentToken(hash) == nil)
        gate.signal()
        #expect(try await purging.entries == 1)
        #expect(try await stage.get().source == .origin)
        await stage.end()
    }

    @Test(arguments: [false, true])
    func reloadEndsTheOldResponseThoughReadsAreRefused(isStorable: Bool) async throws {
        let stage = try await stage()
        stage.origin.follow { _, _ in
            let fields: HeaderFields =
                isStorable
                ? ["Cache-Control": "max-age=600", "X-Refused": "by the hook"]
                : ["Cache-Control": "no-store"]
            return .whole(fields: fields, body: "new")
        }
        try await stall()
        async let reloading = stage.get(policy: .reload)
        try await releaseAfterARefusal(stage)
        let reloaded = try await reloading
        #expect(reloaded.body == "new")
        #expect(try await !stage.holds())
        await stage.end()
    }

    /// The request's own look-up is refused, so the origin is asked although a response is stored.
    @Test func answerEndsTheOldResponseThoughReadsAreRefused() async throws {
        let stage = try await stage()
        stage.origin.follow { _, _ in
            .whole(fields: ["Cache-Control": "no-store"], body: "new")
        }
        try await stall()
        async let answering = stage.get()
        try await releaseAfterARefusal(stage)
        let answered = try await answering
        #expect(answered.body == "new")
        #expect(try await !stage.holds())
        await stage.end()
    }

    @Test func renewalReplacesTheRecordThoughReadsAreRefused() async throws {
        let stage = try await stage()
        let services = stage.cache.services
        let tiers = services.tiers
        let key = try services.key(of: CacheRequest(url: Stage.url)).key
        let old = try #require(await tiers.entry(key)).0
        let stored = try #require(StoredResponse(old))
        var facts = stored.facts
        facts.freshnessLifetimeSeconds = 7
        let blueprint = EntryBuilder(renewing: stored, facts: facts).blueprint
        let new = await tiers.renewed(old, as: blueprint)
        try await stall()
        async let replacing = tiers.replace(old, by: new, since: tiers.ledger.ticket())
        try await releaseAfterARefusal(stage)
        let isReplaced = await replacing
        #expect(isReplaced)
        let present = try #require(await tiers.entry(key)).0
        #expect(StoredResponse(present)?.facts.freshnessLifetimeSeconds == 7)
        await stage.end()
    }
}
