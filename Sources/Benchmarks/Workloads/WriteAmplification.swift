import CacheEngine
import CacheTestSupport

extension Workload {
    /// The number of bytes that reach the device for each byte stored.
    static let writeAmplification = Workload(
        name: "write-amplification",
        question: "bytes written over bytes stored, zipf 0.99 over four times what fits"
    ) { plan in [WriteAmplificationCase(plan)] }
}

private final class WriteAmplificationCase: WorkloadCase {
    private static let bodySizeBytes = 8 << 10
    private let plan: WorkloadPlan
    private let capacityBytes: Int
    private let order: [UInt32]
    private let keys: KeySet

    init(_ plan: WorkloadPlan) {
        self.plan = plan
        capacityBytes = plan.sized(smoke: 16 << 20, quick: 64 << 20, full: 256 << 20)
        // Bodies compress to about half their size, so the keys need four times the capacity.
        let keyCount = capacityBytes * 8 / Self.bodySizeBytes
        keys = KeySet(count: keyCount)
        var random = SeededRandom(seed: 17)
        order = ZipfSampler(count: keyCount, exponent: 0.99)
            .scatteredSequence(keyCount * plan.sized(smoke: 1, quick: 3, full: 6), from: &random)
    }

    var parameters: [Measurement.Parameter] {
        [.init("capacity", Unit.bytes.readable(Double(capacityBytes)))]
    }

    func prepare() async throws {}

    func round() async throws -> [Sample] {
        let scratch = try ScratchDirectory(in: plan.scratchDirectory)
        let tier = try await DiskTier.open(
            DiskConfiguration(directory: scratch.path + "/tier", capacityBytes: capacityBytes)
        )
        var hits = 0
        for number in order {
            if try await visit(Int(number), tier) { hits += 1 }
        }
        try await tier.flush()
        let statistics = tier.statistics
        let used = await tier.usage()
        await tier.close()
        try WorkloadFailure.require(
            used.bytes <= capacityBytes,
            "write-amplification: \(used.bytes) bytes are used, more than \(capacityBytes)"
        )
        return [
            .lowerIsBetter("write_amplification", statistics.writeAmplification, .share),
            .higherIsBetter("hit_ratio", Double(hits) / Double(order.count), .share),
        ]
    }

    /// Reads an entry and stores it on a miss, as a cache does; returns whether it was a hit.
    private func visit(_ number: Int, _ tier: DiskTier) async throws -> Bool {
        let (hash, key) = keys.withBytes { bytes in
            (tier.hasher.hash(bytes.key(number)), [UInt8](bytes.key(number)))
        }
        var result = key.withUnsafeBytes { tier.read(hash, key: $0) }
        if case .mustWait = result { result = await tier.readWaiting(hash, key: key) }
        if case .hit = result { return true }
        let entry = key.withUnsafeBytes { key in
            EntryMaker.entry(
                hash: hash,
                key: key,
                bodySizeBytes: Self.bodySizeBytes,
                firstByte: MemoryFixture.firstByte(number)
            ) { BodyPool.shared.copyBody(number, into: $0) }
        }
        if tier.enqueue(entry) == .refused(.queueFull) {
            try await tier.flush()
            _ = tier.enqueue(entry)
        }
        return false
    }
}
