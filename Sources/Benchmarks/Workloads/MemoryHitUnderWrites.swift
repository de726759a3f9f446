import CacheEngine
import Platform
import Synchronization

extension Workload {
    /// The latency of a hit while another thread writes to its shard.
    static let memoryHitUnderWrites = Workload(
        name: "memory-hit-under-writes",
        question: "hits in one shard while another thread stores into that very shard"
    ) { plan in
        [
            UnderWritesCase(plan, .paced(nanoseconds: 50_000)),
            UnderWritesCase(plan, .continuous),
        ]
    }
}

private final class UnderWritesCase: WorkloadCase {
    /// The rate at which the other thread writes.
    enum Writing {
        case paced(nanoseconds: UInt64)
        case continuous
    }

    private let plan: WorkloadPlan
    private let writing: Writing
    private var fixture: MemoryFixture?
    private var keysOfShard: [Int] = []
    /// The time of a hit while nothing is written.
    private var usualNanoseconds: UInt64 = 0

    init(_ plan: WorkloadPlan, _ writing: Writing) {
        self.plan = plan
        self.writing = writing
    }

    var parameters: [Measurement.Parameter] {
        switch writing {
        case .paced(let nanoseconds): [.init("store_every_us", nanoseconds / 1_000)]
        case .continuous: [.init("stores", "back-to-back")]
        }
    }

    func prepare() async throws {
        let fixture = MemoryFixture(keyCount: plan.sized(smoke: 4_096, quick: 65_536, full: 65_536))
        // The top bits select the shard; there are at most 256 shards.
        keysOfShard = (0..<fixture.keys.count).filter { fixture.hashes[$0].placement >> 56 == 0 }
        try WorkloadFailure.require(keysOfShard.count >= 2, "No two keys share a shard")
        self.fixture = fixture
        let quiet = Self.read(fixture, keysOfShard, 10_000, usual: nil)
        usualNanoseconds = quiet.histogram.percentile(0.5)
    }

    func round() async throws -> [Sample] {
        guard let fixture else { throw WorkloadFailure.notPrepared }
        let keys = keysOfShard
        let (writing, usual) = (writing, usualNanoseconds)
        let operations = plan.sized(smoke: 2_000, quick: 200_000, full: 1_000_000)
        let isDone = Atomic(false)
        let stores = Atomic(0)
        let outcome = ThreadTeam.run(threads: 2) { thread -> TimedLoop.Outcome? in
            if thread == 1 {
                Self.write(fixture, keys, writing, until: isDone, counting: stores)
                return nil
            }
            let read = Self.read(fixture, keys, operations, usual: usual)
            isDone.store(true, ordering: .releasing)
            return read
        }
        guard let read = outcome.results.compactMap({ $0 }).first else {
            throw WorkloadFailure("No entry was read")
        }
        try read.requireAllCorrect("memory-hit-under-writes")
        let written = stores.load(ordering: .relaxed)
        try WorkloadFailure.require(written > 0, "No entry was stored during the reads")
        let seconds = Double(outcome.elapsedNanoseconds) / 1e9
        return [
            .time("time_per_hit", Double(read.histogram.percentile(0.5)), read.histogram),
            .higherIsBetter("stores_meanwhile", Double(written) / seconds, .operationsPerSecond),
        ]
    }

    func finish() async throws { fixture = nil }

    private static func read(
        _ fixture: MemoryFixture,
        _ keys: [Int],
        _ operations: Int,
        usual: UInt64?
    ) -> TimedLoop.Outcome {
        var outcome = TimedLoop.Outcome(operations: operations)
        var times = HitTimes(usualNanoseconds: usual)
        for step in 0..<operations {
            let number = keys[step % keys.count]
            let before = monotonicNanoseconds()
            let isHit = fixture.isHit(number)
            times.record(Stopwatch.elapsed(from: before, to: monotonicNanoseconds()))
            if isHit { outcome.correct += 1 }
        }
        outcome.histogram = times.histogram
        return outcome
    }

    private static func write(
        _ fixture: MemoryFixture,
        _ keys: [Int],
        _ writing: Writing,
        until isDone: borrowing Atomic<Bool>,
        counting stores: borrowing Atomic<Int>
    ) {
        var step = 0
        repeat {
            let entry = fixture.entry(keys[step % keys.count])
            fixture.tier.store(entry)
            stores.add(1, ordering: .relaxed)
            step += 1
            if case .paced(let nanoseconds) = writing {
                let due = monotonicNanoseconds() + nanoseconds
                while monotonicNanoseconds() < due, !isDone.load(ordering: .acquiring) {}
            }
        } while !isDone.load(ordering: .acquiring)
    }
}
