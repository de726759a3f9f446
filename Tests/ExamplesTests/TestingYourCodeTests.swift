import CacheEngine
import CacheTestSupport
import Testing

@testable import Snippets

/// The other tests that the article on testing shows.
@Suite(.timeLimit(.minutes(1))) struct TestingYourCodeTests {
    @Test func workBehindAResponse() async throws {
        let clock = TestClock()
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=60, stale-while-revalidate=60"],
            body: "hello"
        )
        var configuration = HTTPCache.Configuration()
        configuration.clock = clock
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        let request = CacheRequest(url: "http://example.com/")

        _ = try await cache.respond(to: request)
        await cache.waitUntilIdle()
        clock.advance(seconds: 61)
        let stale = try await cache.respond(to: request)
        #expect(stale.info.source == .stale)
        await cache.waitUntilIdle()
        #expect(origin.count == 2)
        await cache.shutDown()
    }

    @Test func unchangedResponseIsConfirmed() async throws {
        let origin = ScriptedOrigin { request, number in
            if request.fields.contains("If-None-Match") { return OriginResponse(status: 304) }
            return .whole(
                fields: ["Cache-Control": "no-cache", "ETag": "\"\(number)\""],
                body: "version \(number)"
            )
        }
        let cache = try await HTTPCache(origin: origin)
        let request = CacheRequest(url: "http://example.com/")
        _ = try await cache.respond(to: request).body.collect()
        let response = try await cache.respond(to: request)
        #expect(response.info.source == .revalidated)
        #expect(try await response.body.collect().text == "version 1")
        await cache.shutDown()
    }

    @Test func storedResponseIsServedWithoutANetwork() async throws {
        let origin = ScriptedOrigin(fields: ["Cache-Control": "no-cache", "ETag": "\"1\""])
        let cache = try await HTTPCache(origin: origin)
        let request = CacheRequest(url: "http://example.com/")
        _ = try await cache.respond(to: request).body.collect()
        origin.cutOff()
        let policy = CachePolicy.standard.with { $0.fallback = .always() }
        let response = try await cache.respond(to: request, policy: policy)
        #expect(response.info.source == .fallback)
        await cache.shutDown()
    }

    @Test func aBodyThatBreaksOffIsAnError() async throws {
        let body = ManualBody()
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(
                status: 200,
                fields: ["Content-Length": "10"],
                body: body.stream(count: 10)
            )
        }
        let cache = try await HTTPCache(origin: origin)
        let response = try await cache.respond(to: CacheRequest(url: "http://example.com/"))
        body.feed("half")
        body.finish()
        await #expect(throws: CacheError.self) { try await response.body.collect() }
        await cache.shutDown()
    }

    @Test func theStoreKeepsItsPromises() async {
        let broken = await StoreConformance { DictionaryStore() }.run()
        #expect(broken.isEmpty)
    }

    @Test func aStoreThatFailsBringsNothingBack() async throws {
        let clock = TestClock()
        let store = NemesisStore(InMemoryStore(), clock: clock)
        var configuration = HTTPCache.Configuration(memory: .disabled, backing: .custom(store))
        configuration.clock = clock
        let origin = ScriptedOrigin { _, number in
            .whole(fields: ["Cache-Control": "max-age=60"], body: "version \(number)")
        }
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        let request = CacheRequest(url: "http://example.com/")
        _ = try await cache.respond(to: request).body.collect()

        store.follow(.scripted { $0.method == .remove ? .throwsBefore : .none })
        await #expect(throws: CacheError.self) { try await cache.remove(request) }
        let response = try await cache.respond(to: request)
        #expect(try await response.body.collect().text == "version 2")
        await cache.shutDown()
    }

    @Test func anOriginThatHangsIsGivenUp() async throws {
        let nemesis = NemesisOrigin(
            ScriptedOrigin(body: "hello"),
            plan: .scripted { $0.number == 1 ? .hangsBefore(.ignored) : .none }
        )
        let simulation = try await SimulatedCache(origin: nemesis)
        let caller = await simulation.answer(CacheRequest(url: "http://example.com/"))
        await simulation.advance(seconds: 61)
        #expect(caller.end != nil)
        nemesis.release()
        #expect(await simulation.shutDown())
    }
}
