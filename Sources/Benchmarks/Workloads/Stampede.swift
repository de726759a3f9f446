import CacheEngine
import Synchronization

extension Workload {
    /// Everybody misses the same thing at once.
    static let stampede = Workload(
        name: "stampede",
        question: "10,000 callers miss one key at once; the origin takes 100 ms"
    ) { plan in [StampedeCase(plan)] }
}

private final class StampedeCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let callerCount: Int

    init(_ plan: WorkloadPlan) {
        self.plan = plan
        callerCount = plan.sized(smoke: 200, quick: 10_000, full: 10_000)
    }

    var parameters: [Measurement.Parameter] { [.init("callers", callerCount)] }
    func prepare() async throws {}

    func round() async throws -> [Sample] {
        let origin = SlowOrigin(
            milliseconds: plan.sized(smoke: 20, quick: 100, full: 100)
        )
        let cache = try await HTTPCache(
            configuration: Configuration(memory: .megabytes(16)),
            origin: origin
        )
        let request = CacheRequest(url: KeySet.text(7))
        let waits = try await withThrowingTaskGroup(of: UInt64.self) { group in
            for _ in 0..<callerCount {
                group.addTask {
                    let response = try await cache.respond(to: request)
                    let body = try await response.body.collect(upTo: .megabytes(1))
                    try WorkloadFailure.require(
                        body.count == HTTPFixture.bodySizeBytes,
                        "stampede: a caller got half an answer"
                    )
                    return monotonicNanoseconds() &- origin.answeredAt
                }
            }
            var histogram = Histogram()
            for try await wait in group { histogram.record(wait) }
            return histogram
        }
        let requests = origin.requestCount
        await cache.shutDown()
        try WorkloadFailure.require(
            waits.count == UInt64(callerCount),
            "stampede: callers went missing"
        )
        return [
            .lowerIsBetter("origin_requests", Double(requests), .count),
            .time("last_added_wait", Double(waits.max), waits),
        ]
    }
}

/// An origin that takes its time, and notes when it answered first.
private final class SlowOrigin: Origin {
    private let milliseconds: Int
    private let requests = Atomic(0)
    private let answered = Atomic<UInt64>(0)

    init(milliseconds: Int) { self.milliseconds = milliseconds }

    var requestCount: Int { requests.load(ordering: .acquiring) }
    var answeredAt: UInt64 { answered.load(ordering: .acquiring) }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        requests.add(1, ordering: .acquiringAndReleasing)
        try await Task.sleep(nanoseconds: UInt64(milliseconds) * 1_000_000)
        let response = try await NumberedOrigin().fetch(request)
        _ = answered.compareExchange(
            expected: 0,
            desired: monotonicNanoseconds(),
            ordering: .acquiringAndReleasing
        )
        return response
    }
}
