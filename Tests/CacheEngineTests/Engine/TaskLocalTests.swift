import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// The values of the task that asks reach the origin: a trace does not end at the cache.
@Suite struct TaskLocalTests {
    @TaskLocal static var trace = "none"

    /// An origin that notes in which trace it was asked.
    private final class Traced: Origin {
        private let seen = Mutex<[String]>([])
        var traces: [String] { seen.withLock { $0 } }

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            seen.withLock { $0.append(TaskLocalTests.trace) }
            return .whole(fields: ["Cache-Control": "max-age=1, stale-while-revalidate=60"])
        }
    }

    @Test func aFetchAndARefreshBehindSeeTheValuesOfTheRequestThatStartedThem() async throws {
        let origin = Traced()
        let clock = TestClock()
        var configuration = Configuration()
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
}
