import CacheEngine
import CacheTestSupport
import Platform

extension Workload {
    /// Latency as the load grows to saturation.
    static let openLoop = Workload(
        name: "open-loop",
        question: "requests arrive on a schedule, at growing rates; waiting counts as latency"
    ) { plan in
        let tasks = plan.threads ?? MachineDescription.coreCount
        let keys = plan.keys ?? plan.sized(smoke: 256, quick: 16_384, full: 65_536)
        let fixture = SharedLater { try await HTTPFixture(keyCount: keys) }
        let rates = plan.sized(smoke: [10_000], quick: quickRates, full: fullRates)
        let sweep = RateSweep(lowestRate: rates[0])
        return rates.map { OpenLoopCase(plan, fixture, sweep, ratePerSecond: $0, tasks: tasks) }
    }

    private static let quickRates = [
        100_000, 250_000, 500_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000, 4_000_000,
    ]
    private static let fullRates = [
        100_000, 250_000, 500_000, 750_000, 1_000_000, 1_250_000, 1_500_000, 1_750_000, 2_000_000,
        2_500_000, 3_000_000, 3_500_000, 4_000_000, 5_000_000, 6_000_000,
    ]
}

/// The progress of a sweep over the rates, from the lowest to the highest in each round.
///
/// Each round begins anew: a pause of the machine ends one sweep and not all of them.
package final class RateSweep {
    private let lowestRate: Int
    /// The lowest rate of this round that the machine could not sustain.
    private var saturatedAt = Int.max

    package init(lowestRate: Int) { self.lowestRate = lowestRate }

    /// Whether the rate is worth a measurement.
    ///
    /// Beyond saturation, latency only grows with the duration of the measurement.
    package func begins(_ rate: Int) -> Bool {
        if rate == lowestRate { saturatedAt = .max }
        return rate <= saturatedAt
    }

    package func ended(_ rate: Int, completedPerSecond completed: Double) {
        if completed < Double(rate) * 0.8 { saturatedAt = rate }
    }
}

private final class OpenLoopCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let shared: SharedLater<HTTPFixture>
    private let sweep: RateSweep
    private let ratePerSecond: Int
    private let tasks: Int
    private var random: SeededRandom

    init(
        _ plan: WorkloadPlan,
        _ shared: SharedLater<HTTPFixture>,
        _ sweep: RateSweep,
        ratePerSecond: Int,
        tasks: Int
    ) {
        self.plan = plan
        self.shared = shared
        self.sweep = sweep
        self.ratePerSecond = ratePerSecond
        self.tasks = tasks
        random = SeededRandom(seed: UInt64(ratePerSecond))
    }

    var parameters: [Measurement.Parameter] {
        [.init("rate", ratePerSecond), .init("threads", tasks)]
    }

    func prepare() async throws { _ = try await shared.get() }

    func round() async throws -> [Sample] {
        guard sweep.begins(ratePerSecond) else { return [] }
        let fixture = try await shared.get()
        let seconds = plan.sized(smoke: 0.005, quick: 0.1, full: 1.0)
        let share = Double(ratePerSecond) / Double(tasks)
        let schedules = (0..<tasks).map { _ in
            ArrivalSchedule(ratePerSecond: share, durationSeconds: seconds, from: &random)
        }
        let start = monotonicNanoseconds()
        let histogram = try await withThrowingTaskGroup(of: Histogram.self) { group in
            for (worker, schedule) in schedules.enumerated() {
                group.addTask {
                    try await schedule.play(serve: { step in
                        let isHit = try await fixture.isHit(fixture.number(worker, step))
                        try WorkloadFailure.require(isHit, "open-loop: a request was not a hit")
                    })
                }
            }
            var whole = Histogram()
            for try await part in group { whole.merge(part) }
            return whole
        }
        let elapsed = Double(monotonicNanoseconds() - start) / 1e9
        let completed = Double(histogram.count) / elapsed
        sweep.ended(ratePerSecond, completedPerSecond: completed)
        return [
            .time("latency", Double(histogram.percentile(0.99)), histogram),
            .higherIsBetter("completed", completed, .operationsPerSecond),
        ]
    }

    func finish() async throws {
        await shared.made?.cache.shutDown()
        shared.release()
    }
}
