import CacheEngine

extension Workload {
    /// Everybody wants the same thing.
    static let hotKey = Workload(
        name: "hot-key",
        question: "all threads look up one and the same key"
    ) { plan in plan.threadCounts.map { HotKeyCase(plan, threads: $0) } }
}

private final class HotKeyCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let threads: Int
    private var fixture: MemoryFixture?

    init(_ plan: WorkloadPlan, threads: Int) {
        self.plan = plan
        self.threads = threads
    }

    var parameters: [Measurement.Parameter] { [.init("threads", threads)] }

    func prepare() async throws { fixture = MemoryFixture(keyCount: 1) }

    func round() async throws -> [Sample] {
        guard let fixture else { throw WorkloadFailure("not prepared") }
        let steady = TimedLoop.run(threads: threads, nanoseconds: plan.roundNanoseconds) {
            fixture.hits(thread: $0, chunk: $1)
        }
        try steady.requireAllCorrect("hot-key")
        let single = TimedLoop.runSingly(
            threads: threads,
            operations: plan.sized(smoke: 1_000, quick: 50_000, full: 300_000)
        ) { _, _ in fixture.isHit(0) }
        let perSecond = 1e9 / steady.nanosecondsPerOperation * Double(threads)
        return [
            .time("time_per_hit", steady.nanosecondsPerOperation, single.histogram),
            .higherIsBetter("throughput", perSecond, .operationsPerSecond),
        ]
    }

    func finish() async throws { fixture = nil }
}
