import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// `data(for:)` and `decode(_:from:)` of a cache.
@Suite(.timeLimit(.minutes(1))) struct RequestHelperTests {
    private struct Weather: Codable, Equatable {
        var degrees: Int
    }

    private func answer(
        _ body: String,
        status: Int = 200
    ) async throws -> (cache: HTTPCache, request: URLRequest, server: LoopbackServer) {
        let server = try LoopbackServer { request, connection in
            let content = String(decoding: request.body, as: UTF8.self)
            connection.respond(status, [("Cache-Control", "max-age=60")], body: body + content)
        }
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let url = try #require(URL(string: server.baseURL + "/weather"))
        return (cache, URLRequest(url: url), server)
    }

    private func code(_ work: () async throws -> Void) async -> CacheError.Code? {
        do {
            try await work()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    @Test func dataAndHeadOfAResponse() async throws {
        let (cache, request, server) = try await answer("hello")
        for _ in 0..<2 {
            let (data, head) = try await cache.data(for: request)
            #expect(String(decoding: data, as: UTF8.self) == "hello")
            #expect(head.statusCode == 200)
            #expect(head.url == request.url)
        }
        #expect(server.requestCount == 1)
    }

    @Test func valueIsDecodedOnceFromTheOrigin() async throws {
        let (cache, request, server) = try await answer("{\"degrees\":7}")
        for _ in 0..<2 {
            #expect(try await cache.decode(Weather.self, from: request) == Weather(degrees: 7))
        }
        #expect(server.requestCount == 1)
    }

    @Test func otherResponsesAreErrors() async throws {
        let (cache, request, server) = try await answer("{\"degrees\":7}", status: 404)
        #expect(
            await code { _ = try await cache.decode(Weather.self, from: request) } == .originFailed
        )
        #expect(
            await code { _ = try await cache.data(for: request, upTo: .bytes(3)) } == .bodyTooLarge
        )
        var offline = request
        offline.cachePolicy = .returnCacheDataDontLoad
        offline.url = URL(string: "http://127.0.0.1/other")
        let missing = offline
        #expect(await code { _ = try await cache.data(for: missing) } == .notCached)
        offline.url = nil
        let nowhere = offline
        #expect(await code { _ = try await cache.data(for: nowhere) } == .requestInvalid)
        server.stop()
        let (broken, brokenRequest, other) = try await answer("{")
        defer { other.stop() }
        await #expect(throws: DecodingError.self) {
            try await broken.decode(Weather.self, from: brokenRequest)
        }
    }

    /// The body has not been delivered, so a stored one can still be.
    @Test func storedResponseStandsInForABodyThatBreaksOff() async throws {
        let server = try LoopbackServer { request, connection in
            if request["If-None-Match"] == nil {
                let fields = [("Cache-Control", "max-age=60"), ("ETag", "\"1\"")]
                return connection.respond(200, fields, body: "whole")
            }
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n")
            connection.send("Content-Length: 9\r\n\r\nhalf")
            connection.close()
        }
        for fallback in [CachePolicy.Fallback.always(), .never] {
            var configuration = HTTPCache.Configuration.ephemeral()
            let clock = TestClock()
            configuration.clock = clock
            configuration.policy.fallback = fallback
            let cache = try await HTTPCache(
                configuration: configuration,
                origin: URLSessionOrigin()
            )
            let request = URLRequest(url: try #require(URL(string: server.baseURL + "/")))
            _ = try await cache.data(for: request)
            clock.advance(seconds: 61)
            if fallback == .never {
                #expect(await code { _ = try await cache.data(for: request) } != nil)
            } else {
                let (data, head) = try await cache.data(for: request)
                #expect(String(decoding: data, as: UTF8.self) == "whole")
                #expect(head.value(forHTTPHeaderField: "ETag") == "\"1\"")
            }
        }
    }

    @Test func contentOfAStreamIsSent() async throws {
        let (cache, request, server) = try await answer("got ")
        defer { server.stop() }
        var post = request
        post.httpMethod = "POST"
        post.httpBodyStream = InputStream(data: Data("a stream".utf8))
        let (data, _) = try await cache.data(for: post)
        #expect(String(decoding: data, as: UTF8.self) == "got a stream")
    }
}
