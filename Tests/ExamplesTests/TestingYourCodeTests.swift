import CacheEngine
import CacheTestSupport
import Testing

@testable import Snippets

/// The tests that the article on testing shows.
@Suite(.timeLimit(.minutes(1))) struct TestingYourCodeTests {
    @Test func freshAnswersAreNotLoadedAgain() async throws {
        let clock = TestClock()
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: "hello")
        var configuration = Configuration()
        configuration.clock = clock
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        let request = CacheRequest(url: "http://example.com/")

        _ = try await cache.respond(to: request).body.collect()
        clock.advance(seconds: 59)
        _ = try await cache.respond(to: request)
        #expect(origin.count == 1)
        await cache.shutDown()
    }

    @Test func whatHasNotChangedIsConfirmed() async throws {
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

    @Test func whatIsStoredStandsInForANetworkThatIsGone() async throws {
        let origin = ScriptedOrigin(fields: ["Cache-Control": "no-cache", "ETag": "\"1\""])
        let cache = try await HTTPCache(origin: origin)
        let request = CacheRequest(url: "http://example.com/")
        _ = try await cache.respond(to: request).body.collect()
        origin.cutOff()
        let policy = CachePolicy.useProtocolCachePolicy.with { $0.fallback = .always() }
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
}
