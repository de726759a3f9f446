import CacheEngine

extension Workload {
    /// Storing new entries in a full memory, which evicts others.
    static let store = Workload(
        name: "store",
        question: "new entries into a full memory: build, insert, evict"
    ) { plan in
        [1, 16].flatMap { kibibytes in
            plan.threadCounts.map { threads in
                StoreCase(plan, bodySizeBytes: kibibytes << 10, threads: threads)
            }
        }
    }
}

private final class StoreCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let bodySizeBytes: Int
    private let threads: Int
    private var tier: MemoryTier?
    private var body: [UInt8] = []
    /// The number of keys used so far, so that no two rounds use the same keys.
    private var base = 0

    init(_ plan: WorkloadPlan, bodySizeBytes: Int, threads: Int) {
        self.plan = plan
        self.bodySizeBytes = bodySizeBytes
        self.threads = threads
    }

    var parameters: [Measurement.Parameter] {
        [.init("size", "\(bodySizeBytes >> 10) KiB"), .init("threads", threads)]
    }

    func prepare() async throws {
        tier = MemoryTier(MemoryConfiguration(capacityBytes: 64 << 20))
        body = SyntheticBody.bytes(count: bodySizeBytes, seed: 3)
        // The memory is full before the first round, so every store evicts.
        let wanted = plan.sized(smoke: 1 << 20, quick: 128 << 20, full: 128 << 20) / bodySizeBytes
        for number in 0..<wanted { _ = Self.store(number, in: tier, body) }
        base = wanted
    }

    func round() async throws -> [Sample] {
        let tier = tier
        let body = body
        let base = base
        let threads = threads
        // A chunk of 1,024 stores takes long with large bodies, so it may run past the round's
        // time.
        let outcome = TimedLoop.run(threads: threads, nanoseconds: plan.roundNanoseconds) {
            thread,
            chunk in
            var correct: UInt64 = 0
            let first = base + (chunk * threads + thread) * TimedLoop.chunkSize
            for number in first..<first + TimedLoop.chunkSize
            where Self.store(number, in: tier, body) { correct &+= 1 }
            return correct
        }
        self.base += outcome.operations * threads
        // Admission may refuse an entry. The workload measures time, so only some stores must
        // succeed.
        try WorkloadFailure.require(outcome.correct > 0, "store: no entry was stored")
        return [
            .time("time_per_store", outcome.nanosecondsPerOperation),
            .allocations(outcome.allocations, operations: outcome.operations),
        ]
    }

    func finish() async throws { tier = nil }

    private static func store(_ number: Int, in tier: MemoryTier?, _ body: [UInt8]) -> Bool {
        guard let tier else { return false }
        var key = UInt64(truncatingIfNeeded: number)
        return withUnsafeBytes(of: &key) { key in
            let hash = KeyHasher(seed: KeyHash(placement: 1, identity: 2)).hash(key)
            let entry = EntryMaker.entry(
                hash: hash,
                key: key,
                bodySizeBytes: body.count,
                firstByte: 1
            ) { target in body.withUnsafeBytes { target.copyMemory(from: $0) } }
            return tier.store(entry) == .stored
        }
    }
}
