import CacheTestSupport
import Testing

@testable import CacheEngine

/// Stores that a fetch leaves to its caller (`RequestOptions.leavesStoring`).
@Suite struct LeftStoreTests {
    @Test("a store that a newer response has overtaken removes nothing")
    func overtakenStoreLeavesTheNewerResponse() async throws {
        let stage = try await Stage(
            ScriptedOrigin { _, number in
                .whole(fields: ["Cache-Control": "max-age=60"], body: "version \(number)")
            }
        )
        var request = CacheRequest(url: Stage.url)
        request.options.policy = .reload
        request.options.leavesStoring = true
        var held: [CacheResponse] = []
        for _ in 0..<2 {
            var response = try await stage.cache.respond(to: request)
            response.body = BodyStream(try await response.body.collect())
            held.append(response)
        }
        await stage.cache.waitUntilIdle()
        for response in held.reversed() {
            let pending = try #require(response.info.pendingStore)
            _ = try await stage.cache.store(response, for: request, options: .init(), as: pending)
        }
        let newer = try await held[1].body.collect().text
        #expect(try await stage.get().body == newer)
        #expect(stage.origin.count == 2)
        await stage.end()
    }
}
