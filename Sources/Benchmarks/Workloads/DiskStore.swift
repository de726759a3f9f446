import CacheEngine
import Platform

extension Workload {
    /// Storing entries on disk until all of them have reached the operating system.
    static let diskStore = Workload(
        name: "disk-store",
        question: "new entries onto the disk, flushed; beside raw pwrite or LZ4 on as many threads"
    ) { plan in
        plan.sized(smoke: [4], quick: [4, 64], full: [1, 4, 16, 64, 256])
            .map { DiskStoreCase(plan, bodySizeBytes: $0 << 10) }
    }

    /// The same workload compared with other stores on the same device.
    static func diskStore(beside peers: [PeerProgram.Launch]) -> Workload {
        Workload(name: diskStore.name, question: diskStore.question) { plan in
            plan.sized(smoke: [4], quick: [4, 64], full: [1, 4, 16, 64, 256])
                .map { DiskStoreCase(plan, bodySizeBytes: $0 << 10, peers: peers) }
        }
    }
}

private final class DiskStoreCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let bodySizeBytes: Int
    private let entryCount: Int
    private var fixture: DiskFixture?
    private var roundNumber = 0
    private let peers: DiskPeers

    init(_ plan: WorkloadPlan, bodySizeBytes: Int, peers: [PeerProgram.Launch] = []) {
        self.plan = plan
        self.peers = DiskPeers(peers)
        self.bodySizeBytes = bodySizeBytes
        entryCount = plan.sized(smoke: 1 << 20, quick: 32 << 20, full: 128 << 20) / bodySizeBytes
    }

    var parameters: [Measurement.Parameter] { [.init("size", "\(bodySizeBytes >> 10) KiB")] }

    func prepare() async throws {
        fixture = try await DiskFixture.empty(
            plan,
            entryCount: entryCount,
            bodySizeBytes: bodySizeBytes
        )
        // The first round would create and extend files; the workload measures the steady state.
        try await fixture?.fill()
        try await fixture?.fill()
        if let scratch = fixture?.scratch { try peers.start(in: scratch) }
        _ = try peers.perform(storing)
    }

    private var storing: String { "disk-store size=\(bodySizeBytes) entries=\(entryCount)" }

    func round() async throws -> [Sample] {
        guard let fixture else { throw WorkloadFailure.notPrepared }
        var references: [Sample.Reference] = []
        var ours = (nanoseconds: 0.0, allocations: UInt64(0))
        for side in RoundOrder.sides(2 + peers.count, round: roundNumber) {
            switch side {
            case 0:
                let rate = try floor(beside: fixture).bytesPerSecond()
                references.append(.init(peer: "floor", value: rate))
            case 1: ours = try await timeOurs(fixture)
            default:
                let (peer, answer) = try peers.perform(storing, by: side - 2)
                let rate = Double(bodySizeBytes) / answer.nanosecondsPerOperation * 1e9
                references.append(.init(peer: peer, value: rate))
            }
        }
        roundNumber += 1
        let rate = Double(entryCount * bodySizeBytes) / ours.nanoseconds * 1e9
        let throughputs = references.map { reference in
            var sample = Sample.higherIsBetter("throughput", rate, .bytesPerSecond)
            sample.reference = reference
            return sample
        }
        return throughputs + [
            .time("time_per_store", ours.nanoseconds / Double(entryCount)),
            .allocations(ours.allocations, operations: entryCount),
        ]
    }

    /// The floor with a quarter of the bodies and a thread for each shard.
    private func floor(beside fixture: DiskFixture) -> StoreFloor {
        StoreFloor(
            threads: fixture.tier.shardCount,
            bodySizeBytes: bodySizeBytes,
            bodyCount: entryCount / 4,
            path: fixture.scratch.path + "/raw"
        )
    }

    /// Stores all entries, until they have reached the operating system.
    private func timeOurs(
        _ fixture: DiskFixture
    ) async throws -> (nanoseconds: Double, allocations: UInt64) {
        let before = Allocations.ofAllThreads
        let start = monotonicNanoseconds()
        try await fixture.fill()
        let elapsed = Double(monotonicNanoseconds() - start)
        let allocations = Allocations.ofAllThreads &- before
        let last = await fixture.isHit(entryCount - 1)
        try WorkloadFailure.require(last, "disk-store: the last entry is missing")
        return (elapsed, allocations)
    }

    func finish() async throws {
        peers.finish()
        await fixture?.tier.close()
        fixture = nil
    }
}
