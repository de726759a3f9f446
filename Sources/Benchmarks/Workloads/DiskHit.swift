import CacheEngine
import CacheTestSupport
import Platform

extension Workload {
    /// A disk hit whose pages are in the system's page cache.
    static let diskHitWarm = Workload(
        name: "disk-hit-warm",
        question: "a page-cached disk hit, beside a bare pread and LZ4 of the same bytes"
    ) { plan in DiskHitCase.sizes(plan).map { DiskHitCase(plan, .warm, bodySizeBytes: $0 << 10) } }

    /// The same workload compared with other stores on the same device.
    static func diskHitWarm(beside peers: [PeerProgram.Launch]) -> Workload {
        Workload(name: diskHitWarm.name, question: diskHitWarm.question) { plan in
            DiskHitCase.sizes(plan).map {
                DiskHitCase(plan, .warm, bodySizeBytes: $0 << 10, peers: peers)
            }
        }
    }

    /// A disk hit that must read from the device.
    static let diskHitCold = Workload(
        name: "disk-hit-cold",
        question: "a disk hit with an empty page cache, beside a bare cold read"
    ) { plan in DiskHitCase.sizes(plan).map { DiskHitCase(plan, .cold, bodySizeBytes: $0 << 10) } }
}

private final class DiskHitCase: WorkloadCase {
    enum Temperature {
        case warm
        case cold
    }

    static func sizes(_ plan: WorkloadPlan) -> [Int] {
        plan.sized(smoke: [1, 64], quick: [1, 4, 16, 64, 256], full: [1, 4, 16, 64, 256])
    }

    private let plan: WorkloadPlan
    private let temperature: Temperature
    private let bodySizeBytes: Int
    private let entryCount: Int
    private var fixture: DiskFixture?
    private var floor: DiskFloor?
    private var random = SeededRandom(seed: 1)
    private var roundNumber = 0
    private let peers: DiskPeers

    init(
        _ plan: WorkloadPlan,
        _ temperature: Temperature,
        bodySizeBytes: Int,
        peers: [PeerProgram.Launch] = []
    ) {
        self.plan = plan
        self.peers = DiskPeers(peers)
        self.temperature = temperature
        self.bodySizeBytes = bodySizeBytes
        let bytes = plan.sized(smoke: 1 << 20, quick: 32 << 20, full: 128 << 20)
        entryCount = max(16, min(20_000, bytes / bodySizeBytes))
    }

    var parameters: [Measurement.Parameter] { [.init("size", "\(bodySizeBytes >> 10) KiB")] }

    func prepare() async throws {
        let fixture = try await DiskFixture.empty(
            plan,
            entryCount: entryCount,
            bodySizeBytes: bodySizeBytes
        )
        try await fixture.fill()
        self.fixture = fixture
        floor = try DiskFloor(
            path: fixture.scratch.path + "/floor",
            entryCount: entryCount,
            bodySizeBytes: bodySizeBytes
        )
        try peers.start(in: fixture.scratch)
        _ = try peers.perform("disk-store size=\(bodySizeBytes) entries=\(entryCount)")
    }

    func round() async throws -> [Sample] {
        guard let fixture, let floor else { throw WorkloadFailure.notPrepared }
        roundNumber += 1
        let numbers = numbersOfRound()
        let isChecked = plan.scale != .smoke
        if temperature == .cold { try PageCache.drop(fixture.scratch, isChecked: isChecked) }
        var bare = Histogram()
        var ours = Histogram()
        var allocations: UInt64 = 0
        var theirs: [(name: String, answer: PeerProgram.Answer)] = []
        for side in RoundOrder.sides(2 + peers.count, round: roundNumber) {
            switch side {
            case 0: bare = try timeFloor(floor, numbers)
            case 1:
                let before = Allocations.ofAllThreads
                var waits = 0
                (ours, waits) = try await timeOurs(fixture, numbers)
                allocations = Allocations.ofAllThreads &- before
                try WorkloadFailure.require(
                    temperature == .warm || !isChecked || waits * 2 >= numbers.count,
                    "disk-hit-cold: only \(waits) of \(numbers.count) reads waited for the device; "
                        + "give another --directory"
                )
            default: theirs.append(try peers.perform(hitting(numbers.count), by: side - 2))
            }
        }
        let mine = Double(ours.percentile(0.5))
        return samples(ours, bare, allocations, operations: numbers.count)
            + theirs.map { peer, answer in
                .time("time_per_hit", mine, against: peer, answer.nanosecondsPerOperation)
            }
    }

    func finish() async throws {
        peers.finish()
        await fixture?.tier.close()
        fixture = nil
        floor = nil
    }

    private func samples(
        _ ours: Histogram,
        _ bare: Histogram,
        _ allocations: UInt64,
        operations: Int
    ) -> [Sample] {
        let allocated = Sample.allocations(allocations, operations: operations)
        switch temperature {
        case .warm:
            let (mine, bare) = (Double(ours.percentile(0.5)), Double(bare.percentile(0.5)))
            return [.time("time_per_hit", mine, ours, floor: bare), allocated]
        case .cold:
            // Medians, because a device is sometimes late, for either side.
            let (mine, device) = (Double(ours.percentile(0.5)), Double(bare.percentile(0.5)))
            return [
                .time("time_per_hit", mine, ours, floor: device),
                .time("time_above_device", max(0, mine - device)),
            ]
        }
    }

    /// The numbers of the entries to read in a round.
    ///
    /// Warm: as many as fit the time, in random order. Cold: each entry at most once, far apart.
    private func numbersOfRound() -> [Int] {
        switch temperature {
        case .warm:
            let expected = 2_000 + bodySizeBytes / 3
            let count = max(50, min(20_000, Int(plan.roundNanoseconds) / expected))
            return (0..<count).map { _ in Int(random.next() % UInt64(entryCount)) }
        case .cold:
            let count = min(entryCount / 2, plan.sized(smoke: 8, quick: 60, full: 300))
            let gap = entryCount / count
            return (0..<count).map { $0 * gap }.shuffled(using: &random)
        }
    }

    private func hitting(_ operations: Int) -> String {
        "disk-hit size=\(bodySizeBytes) entries=\(entryCount) operations=\(operations)"
    }

    /// Times the reads, and counts those that had to wait for the device.
    private func timeOurs(
        _ fixture: DiskFixture,
        _ numbers: [Int]
    ) async throws -> (times: Histogram, waits: Int) {
        var (histogram, waits) = (Histogram(), 0)
        for number in numbers {
            fixture.touchKey(number)
            let before = monotonicNanoseconds()
            var isHit = fixture.isHitWithoutWaiting(number)
            if isHit == nil {
                isHit = await fixture.isHitAfterWaiting(number)
                waits += 1
            }
            histogram.record(Stopwatch.elapsed(from: before, to: monotonicNanoseconds()))
            try WorkloadFailure.require(isHit == true, "disk-hit: entry \(number) is missing")
        }
        return (histogram, waits)
    }

    private func timeFloor(_ floor: DiskFloor, _ numbers: [Int]) throws -> Histogram {
        var histogram = Histogram()
        for number in numbers {
            let before = monotonicNanoseconds()
            let isHit = floor.isHit(number)
            histogram.record(Stopwatch.elapsed(from: before, to: monotonicNanoseconds()))
            try WorkloadFailure.require(isHit, "disk-hit: the floor returned a wrong body")
        }
        return histogram
    }
}
