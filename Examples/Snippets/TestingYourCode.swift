import CacheEngine
import CacheTestSupport

enum TestingYourCode {
    static func counted() async throws {
        let clock = TestClock()
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: "hello")
        var configuration = Configuration()
        configuration.clock = clock
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        let request = CacheRequest(url: "http://example.com/")

        _ = try await cache.respond(to: request).body.collect()
        clock.advance(seconds: 59)
        _ = try await cache.respond(to: request)
        assert(origin.count == 1)
        await cache.shutDown()
    }

    static func scripted() -> ScriptedOrigin {
        let origin = ScriptedOrigin { request, number in
            if request.fields.contains("If-None-Match") { return OriginResponse(status: 304) }
            return .whole(
                fields: ["Cache-Control": "no-cache", "ETag": "\"\(number)\""],
                body: "version \(number)"
            )
        }
        return origin
    }

    static func offline(cache: HTTPCache, origin: ScriptedOrigin) async throws {
        let request = CacheRequest(url: "http://example.com/")
        _ = try await cache.respond(to: request).body.collect()
        origin.cutOff()
        let policy = CachePolicy.useProtocolCachePolicy.with { $0.fallback = .always() }
        let response = try await cache.respond(to: request, policy: policy)
        assert(response.info.source == .fallback)
    }

    static func brokenBody() async throws {
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
        do {
            _ = try await response.body.collect()
        } catch let error as CacheError {
            assert(error.code == .bodyTruncated)
        }
        await cache.shutDown()
    }

    static func conformance() async {
        let broken = await StoreConformance { DictionaryStore() }.run()
        assert(broken.isEmpty, "\(broken)")
    }
}
