import CacheEngine
import CacheTestSupport
import Platform
import Synchronization

extension Workload {
    /// Concurrent misses of a single key by many callers.
    static let stampede = Workload(
        name: "stampede",
        question: "10,000 callers miss one key at once; the origin takes 100 ms"
    ) { plan in [StampedeCase(plan), StampedeCase(plan, isBesideHits: true)] }
}

private final class StampedeCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let callerCount: Int
    /// Whether a thread reads another key while the callers are resumed.
    private let isBesideHits: Bool

    init(_ plan: WorkloadPlan, isBesideHits: Bool = false) {
        self.plan = plan
        self.isBesideHits = isBesideHits
        callerCount = plan.sized(smoke: 200, quick: 10_000, full: 10_000)
    }

    var parameters: [Measurement.Parameter] {
        let callers = Measurement.Parameter("callers", callerCount)
        return isBesideHits ? [callers, .init("beside", "hits")] : [callers]
    }

    func prepare() async throws {}

    func round() async throws -> [Sample] {
        let origin = SlowOrigin(
            milliseconds: plan.sized(smoke: 20, quick: 100, full: 100)
        )
        let cache = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(16)),
            origin: origin
        )
        let other = OtherKey(cache)
        try await other.store()
        let usual = other.hits(usual: nil) { $0 < 10_000 }.percentile(0.5)
        let quiet = isBesideHits ? other.hits(usual: usual) { $0 < 100_000 } : Histogram()
        let callers = crowd(before: cache, origin)
        let hits = Task { [isBesideHits] in
            guard isBesideHits else { return Histogram() }
            return await PlainThread.run {
                _ = other.hits(usual: nil) { _ in origin.answeredAt == 0 }
                // On a busy machine the thread may get its processor back after the last caller.
                return other.hits(usual: usual) { $0 == 0 || !origin.isDone }
            }
        }
        var waits = Histogram()
        // Awaiting the last caller first avoids being resumed as often as the callers are.
        for caller in callers.reversed() { waits.record(try await caller.value) }
        origin.finish()
        let busy = await hits.value
        let requests = origin.requestCount
        await cache.shutDown()
        if isBesideHits {
            return [
                .time("other_key_quiet_p99", Double(quiet.percentile(0.99)), quiet),
                .time("other_key_p99", Double(busy.percentile(0.99)), busy),
            ]
        }
        return [
            .lowerIsBetter("origin_requests", Double(requests), .count),
            .time("last_added_wait", Double(waits.max), waits),
        ]
    }

    /// Starts an unstructured task for each caller, as a server does.
    ///
    /// A task group would search all remaining children for each child that ends.
    private func crowd(
        before cache: HTTPCache,
        _ origin: SlowOrigin
    ) -> [Task<UInt64, any Error>] {
        let request = CacheRequest(url: KeySet.text(7))
        return (0..<callerCount).map { _ in
            Task {
                let response = try await cache.respond(to: request)
                let body = try await response.body.collect(upTo: .megabytes(1))
                try WorkloadFailure.require(
                    body.count == HTTPFixture.bodySizeBytes,
                    "stampede: a caller got a body of \(body.count) bytes"
                )
                return monotonicNanoseconds() &- origin.answeredAt
            }
        }
    }
}

/// A key that is independent of the stampede.
private struct OtherKey: Sendable {
    private static let number = 8
    private let cache: HTTPCache
    private let request = CacheRequest(url: KeySet.text(Self.number))

    init(_ cache: HTTPCache) { self.cache = cache }

    func store() async throws {
        let answer = NumberedOrigin.response(
            Self.number,
            bodySizeBytes: HTTPFixture.bodySizeBytes
        )
        _ = try await cache.store(answer, for: request)
    }

    /// Times hits while `goesOn` returns true for the number of hits so far.
    ///
    /// `usual` is the time of a hit that nothing delays, in nanoseconds, if it is known.
    func hits(usual: UInt64?, while goesOn: (Int) -> Bool) -> Histogram {
        var times = HitTimes(usualNanoseconds: usual)
        var count = 0
        while goesOn(count) {
            let before = monotonicNanoseconds()
            let isHit = cache.immediateResponse(to: request) != nil
            times.record(Stopwatch.elapsed(from: before, to: monotonicNanoseconds()))
            precondition(isHit, "A response stored for a day is there")
            count += 1
        }
        return times.histogram
    }
}

/// An origin with a delay, which records the time of its first answer.
private final class SlowOrigin: Origin {
    private let milliseconds: Int
    private let requests = Atomic(0)
    private let answered = Atomic<UInt64>(0)
    private let done = Atomic(false)

    init(milliseconds: Int) { self.milliseconds = milliseconds }

    var requestCount: Int { requests.load(ordering: .acquiring) }
    var answeredAt: UInt64 { answered.load(ordering: .acquiring) }
    /// Whether all callers have received the response.
    var isDone: Bool { done.load(ordering: .relaxed) }

    func finish() { done.store(true, ordering: .relaxed) }

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
