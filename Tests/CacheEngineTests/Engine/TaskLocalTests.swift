import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// Task-local values of the caller reach the origin, so that traces do not end at the cache.
@Suite struct TaskLocalTests {
    @TaskLocal static var trace = "none"

    /// An origin that records the trace of each request.
    private final class Traced: Origin {
        private let seen = Mutex<[String]>([])
        var traces: [String] { seen.withLock { $0 } }

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            seen.withLock { $0.append(TaskLocalTests.trace) }
            return .whole(fields: ["Cache-Control": "max-age=1, stale-while-revalidate=60"])
        }
    }

    @Test func fetchAndRefreshSeeTheTaskLocalsOfTheirRequest() async throws {
        let origin = Traced()
        let clock = TestClock()
        var configuration = HTTPCache.Configuration()
        configuration.clock = clock
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        let request = CacheRequest(url: "http://example.com/")
        for trace in ["first", "second"] {
            try await Self.$trace.withValue(trace) {
                _ = try await cache.respond(to: request).body.collect()
            }
            await cache.waitUntilIdle()
            clock.advance(seconds: 5)
        }
        #expect(origin.traces == ["first", "second"])
        await cache.shutDown()
    }

    /// An origin that leaves a task behind; the task sends a request to the cache when released.
    private final class Leaving: Origin {
        let left = Mutex<Task<String, any Error>?>(nil)
        let gate = ManualBody()
        private let cache = Mutex<HTTPCache?>(nil)

        func ask(_ cache: HTTPCache) { self.cache.withLock { $0 = cache } }

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            guard let cache = cache.withLock({ $0.take() }) else { return .whole(body: "again") }
            let task = Task { [gate] in
                _ = try await gate.next()
                return try await cache.respond(to: CacheRequest(url: request.url)).body.collect()
                    .text
            }
            left.withLock { $0 = task }
            return .whole(fields: ["Cache-Control": "no-store"], body: "first")
        }
    }

    /// An origin that asks the cache for the resource that it is fetching.
    private final class Circular: Origin {
        private let cache = Mutex<HTTPCache?>(nil)
        private let seen = Mutex<[CacheError.Code?]>([])
        var codes: [CacheError.Code?] { seen.withLock { $0 } }

        func ask(_ cache: HTTPCache) { self.cache.withLock { $0 = cache } }

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            if let cache = cache.withLock({ $0.take() }) {
                var code: CacheError.Code?
                let own = CacheRequest(url: request.url, fields: request.fields)
                do { _ = try await cache.respond(to: own) } catch {
                    code = (error as? CacheError)?.code
                }
                seen.withLock { $0.append(code) }
            }
            return .whole(fields: ["Cache-Control": "max-age=60", "Vary": "Accept-Language"])
        }
    }

    @Test("a fetch asks for no variant of its own resource", .timeLimit(.minutes(1)))
    func fetchOfAVariantMayNotAskForItsOwnResource() async throws {
        let origin = Circular()
        let cache = try await HTTPCache(origin: origin)
        // The resource varies, as the cache knows when the second language is fetched.
        for language in ["de", "en"] {
            origin.ask(cache)
            let fields: HeaderFields = ["Accept-Language": language]
            let request = CacheRequest(url: "http://example.com/", fields: fields)
            _ = try await cache.respond(to: request).body.collect()
            await cache.waitUntilIdle()
        }
        #expect(origin.codes == [.loadRecursed, .loadRecursed])
        await cache.shutDown()
    }

    @Test("a task begun in a fetch may ask for the same once that fetch is over")
    func taskStartedByAFetchMayLaterAskForTheSameKey() async throws {
        let origin = Leaving()
        let cache = try await HTTPCache(origin: origin)
        origin.ask(cache)
        let request = CacheRequest(url: "http://example.com/")
        #expect(try await cache.respond(to: request).body.collect().text == "first")
        await cache.waitUntilIdle()
        origin.gate.feed("go")
        let left = try #require(origin.left.withLock { $0 })
        #expect(try await left.value == "again")
        await cache.shutDown()
    }
}
