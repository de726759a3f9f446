import CacheEngine

extension Workload {
    /// The engine's own look-up, by the number of keys and threads.
    static let memoryHit = Workload(
        name: "memory-hit",
        question: "the engine's look-up: hash, lock, probe, compare, retain, read a byte"
    ) { plan in
        let counts =
            plan.keys.map { [$0] }
            ?? plan.sized(
                smoke: [1_024],
                quick: [1_024, 65_536, 1_048_576],
                full: [1_024, 65_536, 1_048_576]
            )
        return counts.flatMap { count -> [any WorkloadCase] in
            let fixture = Shared { MemoryFixture(keyCount: count) }
            return plan.threadCounts.map { MemoryHitCase(plan, fixture, count, threads: $0) }
        }
    }
}

private final class MemoryHitCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let shared: Shared<MemoryFixture>
    private let keyCount: Int
    private let threads: Int

    init(_ plan: WorkloadPlan, _ shared: Shared<MemoryFixture>, _ keyCount: Int, threads: Int) {
        self.plan = plan
        self.shared = shared
        self.keyCount = keyCount
        self.threads = threads
    }

    var parameters: [Measurement.Parameter] {
        [.init("keys", keyCount), .init("threads", threads)]
    }

    func prepare() async throws {
        let fixture = shared.value
        _ = TimedLoop.run(threads: threads, nanoseconds: plan.roundNanoseconds / 4) {
            fixture.hits(thread: $0, chunk: $1)
        }
    }

    func round() async throws -> [Sample] {
        let fixture = shared.value
        let steady = TimedLoop.run(threads: threads, nanoseconds: plan.roundNanoseconds) {
            fixture.hits(thread: $0, chunk: $1)
        }
        try steady.requireAllCorrect("memory-hit")
        let single = TimedLoop.runSingly(
            threads: threads,
            operations: plan.sized(smoke: 1_000, quick: 50_000, full: 300_000)
        ) { thread, step in fixture.isHit(fixture.keyNumber(thread, step)) }
        try single.requireAllCorrect("memory-hit")
        return [
            .time("time_per_hit", steady.nanosecondsPerOperation, single.histogram),
            .allocations(steady.allocations, operations: steady.operations),
        ]
    }

    func finish() async throws { shared.release() }
}
