import CacheEngine
import Platform

extension Workload {
    /// One caller: a shared hit, and a miss with and without a fleet, in turn.
    static let fleetLatency = Workload(
        name: "fleet-latency",
        question: "one caller: a shared hit, and a miss with the store, the log, or no fleet"
    ) { plan in [FleetLatencyCase(plan)] }
}

private final class FleetLatencyCase: WorkloadCase {
    /// The operations of one kind that follow each other.
    private static let blockCount = 25
    /// The numbers of resources that no machine has requested begin here.
    private static let firstMiss = 1_000_000

    private let plan: WorkloadPlan
    private let blocks: Int
    private var fixture: FleetFixture?
    private var machines: [(sharing: FleetMachine.Sharing, machine: FleetMachine)] = []
    private var nextMiss = firstMiss
    /// The misses that the machine with the store has had.
    private var published = 0

    init(_ plan: WorkloadPlan) {
        self.plan = plan
        blocks = plan.sized(smoke: 2, quick: 10, full: 24)
    }

    var parameters: [Measurement.Parameter] { [.init("size", "4 KiB")] }

    func prepare() async throws {
        let fixture = try await FleetFixture(
            plan,
            keyCount: blocks * Self.blockCount,
            isPatient: plan.isPatient
        )
        self.fixture = fixture
        for sharing in FleetMachine.Sharing.allCases {
            machines.append((sharing, try await fixture.machine(sharing)))
        }
        _ = try await measure()
    }

    func round() async throws -> [Sample] {
        let times = try await measure()
        try times.lookUps.requireFewLost()
        return samples(times)
    }

    /// The times of a round.
    private struct Times {
        var hits = Histogram()
        var lookUps = LookUps()
        /// The misses of each machine.
        var misses: [Histogram]
    }

    private func measure() async throws -> Times {
        guard let fixture else { throw WorkloadFailure.notPrepared }
        let reader = try await fixture.machine()
        var times = Times(misses: .init(repeating: Histogram(), count: machines.count))
        for block in 0..<blocks {
            // The order turns round, so that no kind always follows the same other one.
            let order = Array(machines.indices)
            for index in block % 2 == 0 ? order : order.reversed() {
                try await miss(machines[index], &times.misses[index])
            }
            for number in block * Self.blockCount..<(block + 1) * Self.blockCount {
                let before = monotonicNanoseconds()
                let isHit = try await reader.isSharedHit(number)
                let after = monotonicNanoseconds()
                times.lookUps.add(isHit: isHit)
                // A lost look-up has waited for its limit and then for the origin.
                if isHit { times.hits.record(Stopwatch.elapsed(from: before, to: after)) }
            }
        }
        await reader.cache.shutDown()
        return times
    }

    private func miss(
        _ one: (sharing: FleetMachine.Sharing, machine: FleetMachine),
        _ histogram: inout Histogram
    ) async throws {
        for number in nextMiss..<nextMiss + Self.blockCount {
            let before = monotonicNanoseconds()
            let response = try await one.machine.request(number)
            histogram.record(Stopwatch.elapsed(from: before, to: monotonicNanoseconds()))
            let isMiss = response.info.source == .origin
            try WorkloadFailure.require(isMiss, "fleet: request \(number) was no miss")
        }
        nextMiss += Self.blockCount
        guard one.sharing == .store else { return }
        published += Self.blockCount
        // The copies after these misses must not slow down the next kind.
        try await one.machine.waitUntilPublished(published)
    }

    private func samples(_ times: Times) -> [Sample] {
        let hit = Double(times.hits.percentile(0.5))
        var samples: [Sample] = [
            .time("time_per_shared_hit", hit, times.hits),
            .lostLookUps(times.lookUps.lostShare),
        ]
        let plain = Double(times.misses[0].percentile(0.5))
        for (one, histogram) in zip(machines, times.misses) {
            let median = Double(histogram.percentile(0.5))
            var time = Sample.time("time_per_miss", median, histogram)
            time.parameters = [one.sharing.parameter]
            samples.append(time)
            guard one.sharing != .off else { continue }
            var added = Sample.time("added_to_miss", median - plain)
            added.parameters = [one.sharing.parameter]
            samples.append(added)
        }
        return samples
    }

    func finish() async throws {
        for one in machines { await one.machine.cache.shutDown() }
        machines = []
        await fixture?.finish()
        fixture = nil
    }
}
