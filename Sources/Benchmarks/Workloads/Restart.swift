import CacheEngine
import Platform

extension Workload {
    /// Opening a disk tier with a large number of entries.
    static let restart = Workload(
        name: "restart",
        question: "from opening the directory to the first answer, with 10^6 entries on disk"
    ) { plan in [RestartCase(plan)] }
}

private final class RestartCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let entryCount: Int
    private var scratch: ScratchDirectory?

    init(_ plan: WorkloadPlan) {
        self.plan = plan
        entryCount = plan.keys ?? plan.sized(smoke: 2_000, quick: 1_000_000, full: 1_000_000)
    }

    var parameters: [Measurement.Parameter] { [.init("entries", entryCount)] }

    private static let bodySizeBytes = 64
    private static let firstByte: UInt8 = 1

    private func configuration(_ scratch: ScratchDirectory) -> DiskConfiguration {
        DiskConfiguration(
            directory: scratch.path + "/tier",
            capacityBytes: max(128 << 20, entryCount * 512)
        )
    }

    func prepare() async throws {
        let scratch = try ScratchDirectory(in: plan.scratchDirectory)
        self.scratch = scratch
        let tier = try await DiskTier.open(configuration(scratch))
        let keys = KeySet(count: entryCount)
        for number in 0..<entryCount {
            let entry = keys.withBytes { bytes in
                EntryMaker.entry(
                    hash: tier.hasher.hash(bytes.key(number)),
                    key: bytes.key(number),
                    bodySizeBytes: Self.bodySizeBytes,
                    firstByte: Self.firstByte
                )
            }
            if tier.enqueue(entry) != .stored {
                try await tier.flush()
                try WorkloadFailure.require(
                    tier.enqueue(entry) == .stored,
                    "restart: the disk tier refused an entry"
                )
            }
        }
        try await tier.flush()
        let stored = await tier.usage().entries
        await tier.close()
        try WorkloadFailure.require(
            stored == entryCount,
            "restart: \(stored) of \(entryCount) entries were stored"
        )
    }

    func round() async throws -> [Sample] {
        guard let scratch else { throw WorkloadFailure.notPrepared }
        let start = monotonicNanoseconds()
        let tier = try await DiskTier.open(configuration(scratch))
        let first = await firstByte(tier)
        let elapsed = Double(monotonicNanoseconds() - start)
        let found = tier.recovery.entries
        let cores = min(MachineDescription.coreCount, tier.shardCount)
        await tier.close()
        try WorkloadFailure.require(
            found == entryCount,
            "restart: \(found) of \(entryCount) entries were recovered"
        )
        try WorkloadFailure.require(first == Self.firstByte, "restart: the first answer is wrong")
        let perSecond = Double(found) / (elapsed / 1e9) / Double(cores)
        return [
            .time("time_to_open", elapsed),
            .higherIsBetter("entries_per_core_second", perSecond, .operationsPerSecond),
        ]
    }

    /// Reads an entry; `nil` if it is missing.
    private func firstByte(_ tier: DiskTier) async -> UInt8? {
        let key = Array(KeySet.text(entryCount - 1).utf8)
        let hash = key.withUnsafeBytes { tier.hasher.hash($0) }
        guard case .hit(let stored, _) = await tier.readWaiting(hash, key: key) else { return nil }
        return stored.entry.firstBodyByte
    }

    func finish() async throws { scratch = nil }
}
