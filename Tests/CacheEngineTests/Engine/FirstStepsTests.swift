import CacheEngine
import CacheTestSupport
import Testing

/// The basic paths through the whole engine.
@Suite struct FirstStepsTests {
    let clock = TestClock()

    func cache(_ origin: ScriptedOrigin) async throws -> HTTPCache {
        var configuration = HTTPCache.Configuration(memory: .megabytes(32))
        configuration.clock = clock
        return try await HTTPCache(configuration: configuration, origin: origin)
    }

    let request = CacheRequest(url: "http://example.com/a")

    @Test func secondRequestIsAHit() async throws {
        let origin = ScriptedOrigin()
        let cache = try await cache(origin)

        let first = try await cache.respond(to: request)
        #expect(try await first.body.collect().text == "hello")
        #expect(first.info.source == .origin)
        await cache.waitUntilIdle()
        clock.advance(seconds: 10)
        let second = try await cache.respond(to: request)
        #expect(try await second.body.collect().text == "hello")
        #expect(second.info.source == .fresh)
        #expect(second.fields["Age"] == "10")
        #expect(second.fields["Cache-Status"] == "CacheEngine; hit; ttl=50")
        #expect(origin.count == 1)
        await cache.shutDown()
    }

    @Test func staleAnswerIsConfirmedByOneConditionalRequest() async throws {
        let origin = ScriptedOrigin { request, _ in
            let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
            if request.fields["If-None-Match"] == "\"1\"" {
                return OriginResponse(status: 304, fields: fields)
            }
            return .whole(fields: fields, body: "hello")
        }
        let cache = try await cache(origin)
        _ = try await cache.respond(to: request).body.collect()
        await cache.waitUntilIdle()
        clock.advance(seconds: 61)
        let second = try await cache.respond(to: request)
        #expect(second.status == 200)
        #expect(second.info.source == .revalidated)
        #expect(try await second.body.collect().text == "hello")
        let third = try await cache.respond(to: request)
        #expect(third.info.source == .fresh)
        #expect(origin.count == 2)
        await cache.shutDown()
    }

    @Test func concurrentMissesAreOneRequest() async throws {
        let origin = ScriptedOrigin { _, _ in
            for _ in 0..<100 { await Task.yield() }
            return .whole(fields: ["Cache-Control": "max-age=60"], body: "hello")
        }
        let cache = try await cache(origin)
        let request = request
        let bodies = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<1_000 {
                group.addTask { try await cache.respond(to: request).body.collect().text }
            }
            return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
        #expect(bodies == ["hello": 1_000])
        #expect(origin.count == 1)
        await cache.shutDown()
    }

    @Test func variantsAreKeptApart() async throws {
        let origin = ScriptedOrigin { request, _ in
            .whole(
                fields: ["Cache-Control": "max-age=60", "Vary": "Accept-Language"],
                body: request.fields["Accept-Language"] ?? "none"
            )
        }
        let cache = try await cache(origin)
        for round in 0..<2 {
            for language in ["de", "en"] {
                var request = request
                request.fields["Accept-Language"] = language
                let response = try await cache.respond(to: request)
                #expect(try await response.body.collect().text == language)
                #expect(response.info.source == (round == 0 ? .origin : .fresh))
                await cache.waitUntilIdle()
            }
        }
        #expect(origin.count == 2)
        await cache.shutDown()
    }
}
