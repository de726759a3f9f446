import CacheEngine
import Platform
import Synchronization

extension Workload {
    /// Redis stops answering while a machine is under load, and comes back.
    static let fleetStopped = Workload(
        name: "fleet-stopped",
        question: "Redis is stopped (SIGSTOP) under load, and continued: hits, misses, return",
        roundsMax: 1
    ) { plan in [FleetStoppedCase(plan)] }
}

private final class FleetStoppedCase: WorkloadCase {
    private let plan: WorkloadPlan
    private var fixture: FleetFixture?

    init(_ plan: WorkloadPlan) { self.plan = plan }

    private var quietSeconds: Double { plan.sized(smoke: 0.6, quick: 2, full: 8) }
    /// In the long run the breaker reaches its longest time.
    private var stoppedSeconds: Double { plan.sized(smoke: 1.3, quick: 4, full: 20) }

    var parameters: [Measurement.Parameter] { [.init("stopped", "\(stoppedSeconds.shortest) s")] }

    func prepare() async throws {
        // The limits are what is measured here.
        fixture = try await FleetFixture(plan, keyCount: 2_000, isPatient: false)
    }

    func round() async throws -> [Sample] {
        guard let fixture else { throw WorkloadFailure.notPrepared }
        let machine = try await fixture.machine()
        let plain = try await fixture.machine(.off)
        let load = StoppedLoad(machine, plain)
        let running = Task { try await load.run() }
        // The processor's caches and the connections are warm once the first windows are over.
        try await Self.pass(0.5)
        let quiet = monotonicNanoseconds()
        try await Self.pass(quietSeconds)
        let stopped = monotonicNanoseconds()
        fixture.server.stop()
        try await Self.pass(stoppedSeconds)
        let resumed = monotonicNanoseconds()
        fixture.server.resume()
        load.end()
        let returned = try await firstSharedHit(machine, fixture.keyCount)
        let record = try await running.value
        await machine.cache.shutDown()
        await plain.cache.shutDown()
        return try hitSamples(record.hits, quiet..<stopped, stopped..<resumed)
            + missSamples(record, stopped..<resumed) + [
                .time("time_until_used_again", Double(returned - resumed))
            ]
    }

    func finish() async throws {
        fixture?.server.resume()
        await fixture?.finish()
        fixture = nil
    }

    private static func pass(_ seconds: Double) async throws {
        try await Task.sleep(nanoseconds: UInt64(seconds * 1e9))
    }

    /// Requests entries of the other machine until one comes from the shared store.
    private func firstSharedHit(_ machine: FleetMachine, _ count: Int) async throws -> UInt64 {
        for number in 0..<count {
            if try await machine.request(number).info.tier == .shared {
                return monotonicNanoseconds()
            }
            try await Task.sleep(nanoseconds: 10_000_000)
        }
        throw WorkloadFailure("fleet: the shared store is not used again")
    }

    private func hitSamples(
        _ hits: BurstSchedule,
        _ before: Range<UInt64>,
        _ during: Range<UInt64>
    ) throws -> [Sample] {
        func samples(_ name: String, _ time: Range<UInt64>) throws -> [Sample] {
            try hits.wholeWindows(in: time).map { window in
                var sample = Sample.time("p99_of_hits", Double(window.percentile(0.99)), window)
                sample.parameters = [.init("stop", name)]
                return sample
            }
        }
        let quiet = try samples("before", before)
        var stopped = try samples("during", during)
        let usual = Rounds(quiet.map(\.value)).median
        for index in stopped.indices {
            stopped[index].reference = .init(peer: "before", value: usual)
        }
        return quiet + stopped
    }

    private func missSamples(
        _ record: StoppedLoad.Record,
        _ stop: Range<UInt64>
    ) throws -> [Sample] {
        let second = stop.lowerBound + 1_000_000_000
        let parts = [
            ("first second", stop.lowerBound..<second), ("later", second..<stop.upperBound),
        ]
        return try parts.map { name, time in
            let (fleet, plain) = record.misses(in: time)
            try WorkloadFailure.require(
                fleet.count > 0 && plain.count > 0,
                "fleet: no miss was due in this part of the stop: \(name)"
            )
            var sample = Sample.time(
                "added_to_miss_p99",
                Double(fleet.percentile(0.99)) - Double(plain.percentile(0.99)),
                fleet
            )
            sample.parameters = [.init("time", name)]
            return sample
        }
    }
}

/// Bursts of hits and single misses, both on a schedule, on a machine of a fleet; the same misses on
/// a machine without one.
private final class StoppedLoad: Sendable {
    struct Miss {
        /// The moment at which it was due.
        let due: UInt64
        /// The time from then until its response.
        let nanoseconds: UInt64
        let isInFleet: Bool
    }

    struct Record {
        let hits: BurstSchedule
        let misses: [Miss]

        func misses(in time: Range<UInt64>) -> (fleet: Histogram, plain: Histogram) {
            var (fleet, plain) = (Histogram(), Histogram())
            for miss in misses where time.contains(miss.due) {
                if miss.isInFleet {
                    fleet.record(miss.nanoseconds)
                } else {
                    plain.record(miss.nanoseconds)
                }
            }
            return (fleet, plain)
        }
    }

    private static let missNanoseconds: UInt64 = 5_000_000
    /// The numbers of resources that no machine has requested begin here.
    private static let firstMiss = 1_000_000
    private static let hitNumber = 999_999

    private let machine: FleetMachine
    private let plain: FleetMachine
    private let isOver = Atomic(false)

    init(_ machine: FleetMachine, _ plain: FleetMachine) {
        self.machine = machine
        self.plain = plain
    }

    func end() { isOver.store(true, ordering: .relaxed) }

    private var goesOn: Bool { !isOver.load(ordering: .relaxed) && !Task.isCancelled }

    func run() async throws -> Record {
        async let bursts = hits()
        async let others = misses()
        return Record(hits: try await bursts, misses: try await others)
    }

    /// Makes each burst at its moment, unless an earlier one still goes on.
    private func hits() async throws -> BurstSchedule {
        _ = try await machine.request(Self.hitNumber)
        let request = CacheRequest(url: KeySet.text(Self.hitNumber))
        var bursts = BurstSchedule(start: monotonicNanoseconds())
        while goesOn {
            let now = monotonicNanoseconds()
            if now < bursts.due { try await Task.sleep(nanoseconds: bursts.due - now) }
            guard bursts.canBegin(at: monotonicNanoseconds()) else { continue }
            for _ in 0..<BurstSchedule.hitsOfBurst {
                let before = monotonicNanoseconds()
                let response = try await machine.cache.respond(to: request)
                bursts.record(Stopwatch.elapsed(from: before, to: monotonicNanoseconds()))
                let isHit = response.info.tier == .memory
                try WorkloadFailure.require(isHit, "fleet: a hit was not answered from memory")
            }
            bursts.end(at: monotonicNanoseconds())
        }
        bursts.leaveOut(before: monotonicNanoseconds())
        return bursts
    }

    /// Begins a miss on both machines every few milliseconds, however long the last ones take.
    ///
    /// Its time begins when it is due, also if its task has to wait for a thread.
    private func misses() async throws -> [Miss] {
        let (machine, plain) = (machine, plain)
        return try await withThrowingTaskGroup(of: Miss.self) { group in
            var (number, moment) = (Self.firstMiss, monotonicNanoseconds())
            while goesOn {
                for (target, isInFleet) in [(machine, true), (plain, false)] {
                    group.addTask { [number, moment] in
                        _ = try await target.request(number)
                        let nanoseconds = monotonicNanoseconds() - moment
                        return Miss(due: moment, nanoseconds: nanoseconds, isInFleet: isInFleet)
                    }
                }
                number += 1
                moment += Self.missNanoseconds
                let now = monotonicNanoseconds()
                if moment > now { try await Task.sleep(nanoseconds: moment - now) }
            }
            var misses: [Miss] = []
            for try await miss in group { misses.append(miss) }
            return misses
        }
    }
}
