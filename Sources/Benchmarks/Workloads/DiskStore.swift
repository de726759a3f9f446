import CacheEngine
import Platform

extension Workload {
    /// Storing entries on disk until all of them have reached the operating system.
    static let diskStore = Workload(
        name: "disk-store",
        question: "new entries onto the disk, flushed; beside the slower of raw pwrite and LZ4"
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
                let rate = min(compressionRate(), try writingRate(fixture.scratch.path + "/raw"))
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

    /// The number of body bytes that one thread compresses in a second.
    private func compressionRate() -> Double {
        var raw = [UInt8](repeating: 0, count: bodySizeBytes)
        var stored = [UInt8](repeating: 0, count: bodySizeBytes + bodySizeBytes / 128 + 64)
        let count = max(1, entryCount / 4)
        var elapsed: UInt64 = 0
        for number in 0..<count {
            raw.withUnsafeMutableBytes { BodyPool.shared.copyBody(number, into: $0) }
            let start = monotonicNanoseconds()
            _ = DiskFloor.compress(raw, into: &stored)
            elapsed += Stopwatch.elapsed(from: start, to: monotonicNanoseconds())
        }
        return Double(count * bodySizeBytes) / Double(max(1, elapsed)) * 1e9
    }

    /// The number of bytes that one thread writes in a second, in batches as large as the engine's.
    private func writingRate(_ path: String) throws -> Double {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw TextFile.unwritable(path) }
        defer { close(file) }
        let batch = Array(BodyPool.shared.bytes[..<(256 << 10)])
        let batches = max(4, entryCount * bodySizeBytes / batch.count / 4)
        func write() throws -> UInt64 {
            let start = monotonicNanoseconds()
            for number in 0..<batches {
                let count = pwrite(file, batch, batch.count, off_t(number * batch.count))
                try WorkloadFailure.require(
                    count == batch.count,
                    "\(path): a write of \(batch.count) bytes failed"
                )
            }
            return monotonicNanoseconds() - start
        }
        // The first pass creates the file; the second measures overwriting, as for a reused
        // segment.
        _ = try write()
        return Double(batches * batch.count) / Double(max(1, try write())) * 1e9
    }
}
