import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// Responses that are loaded before they are requested.
@Suite struct PrefetchTests {
    static let requests = ["a", "b", "c"].map { CacheRequest(url: "http://example.com/\($0)") }

    @Test func prefetchedResponsesAreServedWithoutTheOrigin() async throws {
        let stage = try await Stage(
            ScriptedOrigin { request, _ in
                .whole(fields: ["Cache-Control": "max-age=60"], body: request.url)
            }
        )
        #expect(await stage.cache.prefetch(Self.requests) == 3)
        await stage.cache.waitUntilIdle()
        #expect(stage.origin.requests.map(\.url).sorted() == Self.requests.map(\.url))
        stage.origin.cutOff()
        for request in Self.requests {
            let answer = try await stage.send(request)
            #expect(answer.source == .fresh)
            #expect(answer.body == request.url)
        }
        await stage.end()
    }

    @Test func freshEntryIsNotFetchedAgainAndAStaleOneIs() async throws {
        let stage = try await Stage(Resource())
        _ = try await stage.send(Self.requests[0])
        #expect(await stage.cache.prefetch(Self.requests) == 3)
        #expect(stage.origin.count == 3)
        await stage.cache.waitUntilIdle()
        #expect(await stage.cache.prefetch(Self.requests) == 3)
        #expect(stage.origin.count == 3)

        stage.clock.advance(seconds: 61)
        #expect(await stage.cache.prefetch([Self.requests[0]]) == 1)
        #expect(stage.origin.count == 4)
        #expect(stage.origin.requests.last?.fields["If-None-Match"] == "\"1\"")
        await stage.cache.waitUntilIdle()
        #expect(try await stage.send(Self.requests[0]).source == .fresh)
        await stage.end()
    }

    @Test func onlyResponsesThatAreStoredCount() async throws {
        let stage = try await Stage(
            ScriptedOrigin { request, _ in
                switch request.url {
                case "http://example.com/a":
                    return .whole(fields: ["Cache-Control": "max-age=60"], body: "kept")
                case "http://example.com/b":
                    return .whole(fields: ["Cache-Control": "no-store"], body: "not kept")
                default: throw CacheError(.originFailed, detail: "On purpose")
                }
            }
        )
        #expect(await stage.cache.prefetch(Self.requests) == 1)
        await stage.cache.waitUntilIdle()
        #expect(try await stage.holds("http://example.com/a"))
        #expect(try await stage.holds("http://example.com/b") == false)
        #expect(await stage.cache.prefetch([]) == 0)
        await stage.end()
    }

    @Test func responseThatTheHookRefusesDoesNotCount() async throws {
        let stage = try await Stage {
            $0.hooks.willStore = { $0.request.url.hasSuffix("/a") ? $0 : nil }
        }
        #expect(await stage.cache.prefetch(Self.requests) == 1)
        #expect(stage.origin.count == 3)
        await stage.end()
    }

    @Test(arguments: [(0, 1), (1, 1), (2, 2), (.max, 3)])
    func noMoreRequestsThanAllowedRunAtATime(concurrency: Int, allowed: Int) async throws {
        let running = Mutex((now: 0, most: 0))
        let stage = try await Stage(
            ScriptedOrigin { _, _ in
                running.withLock {
                    $0.now += 1
                    $0.most = max($0.most, $0.now)
                }
                for _ in 0..<100 { await Task.yield() }
                running.withLock { $0.now -= 1 }
                return .whole(fields: ["Cache-Control": "max-age=60"], body: "hello")
            }
        )
        #expect(await stage.cache.prefetch(Self.requests, concurrency: concurrency) == 3)
        let most = running.withLock { $0.most }
        #expect(most <= allowed)
        await stage.end()
    }
}
