// The first test that the article on testing shows, whole: a file of a test target needs no more.

import CacheEngine
import CacheTestSupport
import Testing

@Test func freshAnswersAreNotLoadedAgain() async throws {
    let clock = TestClock()
    let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: "hello")
    var configuration = HTTPCache.Configuration()
    configuration.clock = clock
    let cache = try await HTTPCache(configuration: configuration, origin: origin)
    let request = CacheRequest(url: "http://example.com/")

    _ = try await cache.respond(to: request).body.collect()
    clock.advance(seconds: 59)
    _ = try await cache.respond(to: request)
    #expect(origin.count == 1)
    await cache.shutDown()
}
