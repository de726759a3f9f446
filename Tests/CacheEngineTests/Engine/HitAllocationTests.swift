import CAllocationCounter
import CacheTestSupport
import Testing

@testable import CacheEngine

/// Heap allocations of a fresh hit.
@Suite struct HitAllocationTests {
    static let fields: HeaderFields = [
        "Cache-Control": "public, max-age=3600", "Content-Type": "text/html; charset=utf-8",
        "ETag": "\"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
        "Last-Modified": "Sat, 05 Nov 1994 08:49:37 GMT", "Server": "origin/1.0",
    ]

    @Test("a hit through the borrowed form is counted as any other, and allocates nothing")
    func borrowedHitIsCountedAndAllocatesNothing() async throws {
        try #require(ce_allocation_counting_is_available() == 1)
        let stage = try await Stage(ScriptedOrigin(fields: Self.fields)) {
            $0.name = "a name that no word of memory holds \($0.memory)"
        }
        _ = try await stage.get()
        let cache = stage.cache
        let request = CacheRequest(url: Stage.url)
        var bytes = 0
        func hit() {
            _ = cache.withImmediateResponse(to: request) { response in
                response.forEachRun { bytes += $0.count }
                response.withBody { bytes += $0.count }
            }
        }
        for _ in 0..<3 { hit() }
        let hitsBefore = await cache.statistics.answers[.fresh] ?? 0
        let before = ce_allocation_count()
        for _ in 0..<100 { hit() }
        let count = ce_allocation_count() - before
        #expect(count == 0)
        #expect(bytes > 0)
        #expect(await cache.statistics.answers[.fresh] == hitsBefore + 100)
        await stage.end()
    }

    @Test("a fresh hit allocates nothing: its fields stay in the entry until they are read")
    func freshHitAllocatesNothing() async throws {
        try #require(ce_allocation_counting_is_available() == 1)
        let stage = try await Stage(ScriptedOrigin(fields: Self.fields))
        _ = try await stage.get()
        let cache = stage.cache
        let request = CacheRequest(url: Stage.url)
        var isHit = true
        for _ in 0..<3 { isHit = isHit && cache.immediateResponse(to: request) != nil }
        let before = ce_allocation_count()
        for _ in 0..<100 { isHit = isHit && cache.immediateResponse(to: request) != nil }
        let count = ce_allocation_count() - before
        #expect(isHit)
        #expect(count == 0)
        await stage.end()
    }

    @Test("a 304 to a client's condition allocates nothing until its fields are changed")
    func notModifiedAllocatesNothing() async throws {
        try #require(ce_allocation_counting_is_available() == 1)
        let stage = try await Stage(ScriptedOrigin(fields: Self.fields))
        _ = try await stage.get()
        let cache = stage.cache
        let request = CacheRequest(
            url: Stage.url,
            fields: ["If-None-Match": "\"33a64df551425fcc55e4d42a148795d9f25f89d4\""]
        )
        var lines = 0
        func ask() -> Bool {
            guard let response = cache.immediateResponse(to: request) else { return false }
            response.fields.forEachLine { _, _ in lines += 1 }
            return response.status == 304
        }
        var isNotModified = true
        for _ in 0..<3 { isNotModified = ask() && isNotModified }
        let before = ce_allocation_count()
        for _ in 0..<100 { isNotModified = ask() && isNotModified }
        let count = ce_allocation_count() - before
        #expect(isNotModified)
        #expect(count == 0)
        #expect(lines > 0)
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
