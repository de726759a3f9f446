import CAllocationCounter
import CacheTestSupport
import Testing

@testable import CacheEngine

/// Heap allocations of a miss whose origin answers at once.
@Suite struct MissAllocationTests {
    /// An origin whose response costs nothing to make.
    private struct ReadyOrigin: Origin {
        let response: OriginResponse

        func fetch(_ request: OriginRequest) async throws -> OriginResponse { response }
    }

    /// The allocations of one of `count` misses, all of which run on one thread.
    private static func allocations(_ cacheControl: String, count: Int) async throws -> Double {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        var fields = HitAllocationTests.fields
        fields["Cache-Control"] = cacheControl
        fields["Content-Length"] = "4"
        let origin = ReadyOrigin(
            response: OriginResponse(
                status: 200,
                fields: fields,
                body: BodyStream(ByteChunk("body"))
            )
        )
        let cache = try await HTTPCache(origin: origin)
        let allocations = try await Task(executorPreference: executor) {
            let requests = (0..<2 * count).map { number in
                CacheRequest(
                    url: "http://example.com/page/of/a/usual/length/\(number)",
                    options: RequestOptions(taskExecutor: executor)
                )
            }
            var before: Int64 = 0
            for (number, request) in requests.enumerated() {
                // The first half fills tables whose growth is no cost of a single miss.
                if number == count { before = ce_allocation_count() }
                let response = try await cache.respond(to: request)
                guard response.info.source == .origin else { return Double.infinity }
            }
            return Double(ce_allocation_count() - before) / Double(count)
        }.value
        await cache.shutDown()
        return allocations
    }

    @Test(
        "a miss allocates some thirty times, whether or not its response is stored",
        arguments: ["public, max-age=3600", "no-store"]
    )
    func aMissAllocatesLittle(cacheControl: String) async throws {
        try #require(ce_allocation_counting_is_available() == 1)
        let allocations = try await Self.allocations(cacheControl, count: 500)
        // Test builds are not specialised across files; `make thresholds` counts a released one.
        #expect(allocations <= 36, "\(allocations) for \(cacheControl)")
    }
}
