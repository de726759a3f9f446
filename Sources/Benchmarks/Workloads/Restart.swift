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
    private var entriesStored = 0

    init(_ plan: WorkloadPlan) {
        self.plan = plan
        entryCount = plan.keys ?? plan.sized(smoke: 2_000, quick: 1_000_000, full: 1_000_000)
    }

    var parameters: [Measurement.Parameter] { [.init("entries", entryCount)] }

    private static let bodySizeBytes = 64

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
                    firstByte: 1
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
        entriesStored = await tier.usage().entries
        await tier.close()
    }

    func round() async throws -> [Sample] {
        guard let scratch else { throw WorkloadFailure.notPrepared }
        let start = monotonicNanoseconds()
        let tier = try await DiskTier.open(configuration(scratch))
        let elapsed = Double(monotonicNanoseconds() - start)
        let found = tier.recovery.entries
        let cores = min(MachineDescription.coreCount, tier.shardCount)
        await tier.close()
        try WorkloadFailure.require(
            found == entriesStored,
            "restart: \(found) of \(entriesStored) entries were recovered"
        )
        let perSecond = Double(found) / (elapsed / 1e9) / Double(cores)
        return [
            .time("time_to_open", elapsed),
            .higherIsBetter("entries_per_core_second", perSecond, .operationsPerSecond),
        ]
    }

    func finish() async throws { scratch = nil }
}
