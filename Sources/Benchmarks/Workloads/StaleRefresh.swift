import CacheEngine
import CacheTestSupport
import Synchronization

extension Workload {
    /// Stale responses that may be served during their revalidation.
    static let staleRefresh = Workload(
        name: "stale-refresh",
        question: "stale-while-revalidate: the answer at once, the refresh after it"
    ) { plan in [StaleRefreshCase(plan)] }
}

private final class StaleRefreshCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let keyCount: Int
    private let clock = TestClock()
    private let origin = CountingOrigin()
    private var cache: HTTPCache?
    private var requests: [CacheRequest] = []

    init(_ plan: WorkloadPlan) {
        self.plan = plan
        keyCount = plan.sized(smoke: 50, quick: 2_000, full: 10_000)
    }

    var parameters: [Measurement.Parameter] { [.init("keys", keyCount)] }

    func prepare() async throws {
        var configuration = HTTPCache.Configuration(memory: .megabytes(64))
        configuration.clock = clock
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        requests = (0..<keyCount).map { CacheRequest(url: KeySet.text($0)) }
        for (number, request) in requests.enumerated() {
            let response = NumberedOrigin.response(
                number,
                bodySizeBytes: HTTPFixture.bodySizeBytes,
                lifetime: CountingOrigin.lifetime
            )
            _ = try await cache.store(response, for: request)
        }
        self.cache = cache
    }

    func round() async throws -> [Sample] {
        guard let cache else { throw WorkloadFailure.notPrepared }
        // All entries are now stale and may still be served.
        clock.advance(seconds: 20)
        let before = origin.count
        let outcome = try await TaskTeam.runSingly(count: keyCount) { number in
            let response = try await cache.respond(to: requests[number])
            return response.info.isStale && HTTPFixture.isRight(response, number)
        }
        try outcome.requireAllCorrect("stale-refresh")
        await cache.waitUntilIdle()
        let refreshes = origin.count - before
        try WorkloadFailure.require(
            refreshes == keyCount,
            "stale-refresh: \(refreshes) refreshes of \(keyCount) stale responses"
        )
        return [
            .time(
                "time_per_stale_hit",
                Double(outcome.histogram.percentile(0.5)),
                outcome.histogram
            ),
            .lowerIsBetter(
                "refreshes_per_key",
                Double(refreshes) / Double(keyCount),
                .count
            ),
        ]
    }

    func finish() async throws {
        await cache?.shutDown()
        cache = nil
    }
}

private final class CountingOrigin: Origin {
    static let lifetime = "max-age=10, stale-while-revalidate=3600"
    private let requests = Atomic(0)

    var count: Int { requests.load(ordering: .acquiring) }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        requests.add(1, ordering: .relaxed)
        var response = try await NumberedOrigin().fetch(request)
        response.fields["Cache-Control"] = Self.lifetime
        return response
    }
}
