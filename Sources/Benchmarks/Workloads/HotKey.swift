import CacheEngine
import Platform

extension Workload {
    /// Hits of a single key by several threads, compared with one thread.
    static let hotKey = Workload(
        name: "hot-key",
        question: "several threads hit one key: throughput, and its ratio to one thread"
    ) { plan in
        let counts =
            plan.threads.map { [$0] } ?? plan.sized(smoke: [2], quick: [1, 2], full: [1, 2, 4, 8])
        return HotKeyCall.allCases.flatMap { call in
            counts.map { HotKeyCase(plan, call, threads: $0) }
        }
    }
}

/// One call of the engine, with any number of threads.
///
/// A round alternates short runs of one thread and of all threads. Both runs of a pair see the same
/// neighbours, so the median of the pairs' ratios is steadier than a ratio of medians. The
/// processor time of a hit shows contention even if there are fewer processors than threads:
/// without contention it does not depend on the number of threads.
private final class HotKeyCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let call: HotKeyCall
    private let threads: Int
    private var fixture: HotKeyFixture?

    private static let runNanoseconds: UInt64 = 10_000_000

    init(_ plan: WorkloadPlan, _ call: HotKeyCall, threads: Int) {
        self.plan = plan
        self.call = call
        self.threads = threads
    }

    var parameters: [Measurement.Parameter] {
        [.init("threads", threads), .init("call", call.rawValue)]
    }

    func prepare() async throws {
        fixture = try await HotKeyFixture(threads: threads)
        _ = try await run(threads: threads)
    }

    func round() async throws -> [Sample] {
        var throughput = Rounds()
        var scaling = Rounds()
        var processorTime = Rounds()
        for _ in 0..<plan.sized(smoke: 1, quick: 5, full: 20) {
            let one = try await run(threads: 1)
            let all = threads == 1 ? one : try await run(threads: threads)
            throughput.append(all.hitsPerSecond)
            scaling.append(all.hitsPerSecond / one.hitsPerSecond)
            processorTime.append(all.processorNanosecondsPerHit / one.processorNanosecondsPerHit)
        }
        return [
            .higherIsBetter("throughput", throughput.median, .operationsPerSecond),
            .higherIsBetter("scaling", scaling.median, .share),
            .lowerIsBetter("processor_time_over_one_thread", processorTime.median, .share),
        ]
    }

    func finish() async throws {
        await fixture?.cache.shutDown()
        fixture = nil
    }

    private func run(threads: Int) async throws -> HotKeyRun {
        guard let fixture else { throw WorkloadFailure.notPrepared }
        let nanoseconds = min(Self.runNanoseconds, plan.roundNanoseconds)
        let run = try await fixture.run(call, threads: threads, nanoseconds: nanoseconds)
        try WorkloadFailure.require(
            run.wrong == 0,
            "\(call.rawValue): \(run.wrong) of \(run.hits) operations failed"
        )
        return run
    }
}

/// The measured calls.
enum HotKeyCall: String, CaseIterable, Sendable {
    /// The memory's look-up, which returns the entry retained.
    case lookUp
    /// The memory's look-up, which lends the entry to a closure.
    case lookUpInPlace
    case immediateResponse
    /// The same, with a key for each thread: the threads share the cache, but no entry.
    case immediateResponseOwnKey
    /// The response read where it is stored, and a copy of the body.
    case withImmediateResponse
    case respond
}

/// The combined result of the threads of one run.
struct HotKeyRun: Sendable {
    var hits = 0
    var wrong = 0
    var startedAt = UInt64.max
    var endedAt: UInt64 = 0
    var processorNanoseconds: UInt64 = 0

    /// The hits in the time from the first thread's start to the last thread's end.
    var hitsPerSecond: Double { Double(hits) * 1e9 / Double(max(1, endedAt &- startedAt)) }

    var processorNanosecondsPerHit: Double { Double(processorNanoseconds) / Double(max(1, hits)) }

    /// The sum of the work of a team's threads.
    static func sum(_ parts: [HotKeyRun]) -> HotKeyRun {
        parts.reduce(into: HotKeyRun()) { sum, part in
            sum.hits += part.hits
            sum.wrong += part.wrong
            sum.startedAt = min(sum.startedAt, part.startedAt)
            sum.endedAt = max(sum.endedAt, part.endedAt)
            sum.processorNanoseconds += part.processorNanoseconds
        }
    }
}
