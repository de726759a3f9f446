import CAllocationCounter
import CacheTestSupport
import Testing

@testable import CacheEngine

/// What a fresh hit costs the heap.
@Suite struct HitAllocationTests {
    static let fields: HeaderFields = [
        "Cache-Control": "public, max-age=3600", "Content-Type": "text/html; charset=utf-8",
        "ETag": "\"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
        "Last-Modified": "Sat, 05 Nov 1994 08:49:37 GMT", "Server": "origin/1.0",
    ]

    @Test("a fresh hit allocates nothing: its fields stay in the entry until they are read")
    func freshHitAllocatesNothing() async throws {
        try #require(ce_allocation_counting_is_available() == 1)
        let stage = try await Stage(ScriptedOrigin(fields: Self.fields))
        _ = try await stage.get()
        let cache = stage.cache
        let request = CacheRequest(url: Stage.url)
        var isHit = true
        for _ in 0..<3 { isHit = isHit && cache.cachedResponse(for: request) != nil }
        let before = ce_allocation_count()
        for _ in 0..<100 { isHit = isHit && cache.cachedResponse(for: request) != nil }
        let count = ce_allocation_count() - before
        #expect(isHit)
        #expect(count == 0)
        await stage.end()
    }

    @Test("respond allocates no more than the look-up does, when it is a fresh hit")
    func respondAllocatesNoMore() async throws {
        try #require(ce_allocation_counting_is_available() == 1)
        let stage = try await Stage(ScriptedOrigin(fields: Self.fields))
        _ = try await stage.get()
        let cache = stage.cache
        let request = CacheRequest(url: Stage.url)
        var isHit = true
        for _ in 0..<3 {
            isHit = try await cache.respond(to: request).info.source == .fresh && isHit
        }
        let before = ce_allocation_count()
        for _ in 0..<100 {
            isHit = try await cache.respond(to: request).info.source == .fresh && isHit
        }
        let count = ce_allocation_count() - before
        #expect(isHit)
        #expect(count < 10, "The frames come from the task's own memory")
        await stage.end()
    }
}
