import CacheEngine

extension Workload {
    /// Reads mixed with writes, with a skewed popularity of keys.
    static let mixed = Workload(
        name: "mixed",
        question: "zipf 0.99 over the keys; 100, 95 and 75 % reads, the rest replacing stores"
    ) { plan in
        let keyCount = plan.keys ?? plan.sized(smoke: 1_024, quick: 65_536, full: 65_536)
        let fixture = Shared { MemoryFixture(keyCount: keyCount, popularity: .zipf(0.99)) }
        return [100, 95, 75].flatMap { reads in
            plan.threadCounts.map { threads in
                MixedCase(plan, fixture, keyCount: keyCount, readPercent: reads, threads: threads)
            }
        }
    }
}

private final class MixedCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let shared: Shared<MemoryFixture>
    private let keyCount: Int
    private let readPercent: Int
    private let threads: Int

    init(
        _ plan: WorkloadPlan,
        _ shared: Shared<MemoryFixture>,
        keyCount: Int,
        readPercent: Int,
        threads: Int
    ) {
        self.plan = plan
        self.shared = shared
        self.keyCount = keyCount
        self.readPercent = readPercent
        self.threads = threads
    }

    var parameters: [Measurement.Parameter] {
        [.init("keys", keyCount), .init("reads", "\(readPercent) %"), .init("threads", threads)]
    }

    func prepare() async throws { _ = shared.value }

    func round() async throws -> [Sample] {
        let fixture = shared.value
        let readPercent = readPercent
        let outcome = TimedLoop.run(threads: threads, nanoseconds: plan.roundNanoseconds) {
            Self.chunk(fixture, readPercent, thread: $0, chunk: $1)
        }
        try outcome.requireAllCorrect("mixed")
        let perSecond = 1e9 / outcome.nanosecondsPerOperation * Double(threads)
        return [
            .time("time_per_operation", outcome.nanosecondsPerOperation),
            .higherIsBetter("throughput", perSecond, .operationsPerSecond),
            .allocations(outcome.allocations, operations: outcome.operations),
        ]
    }

    func finish() async throws { shared.release() }

    private static func chunk(
        _ fixture: MemoryFixture,
        _ readPercent: Int,
        thread: Int,
        chunk: Int
    ) -> UInt64 {
        // With reads only, the loop is that of `memory-hit`.
        if readPercent == 100 { return fixture.hits(thread: thread, chunk: chunk) }
        var correct: UInt64 = 0
        let first = chunk &* TimedLoop.chunkSize
        for step in first..<first + TimedLoop.chunkSize {
            let number = fixture.keyNumber(thread, step)
            // 37 and 100 have no common divisor, so the writes are spread evenly and follow no
            // order of keys.
            if step &* 37 % 100 < readPercent {
                if fixture.isHit(number) { correct &+= 1 }
            } else {
                let outcome = fixture.tier.store(fixture.entry(number))
                if outcome == .stored { correct &+= 1 }
            }
        }
        return correct
    }
}
