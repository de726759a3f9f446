import CacheEngine

extension Workload {
    /// Putting something into memory, and throwing something else out for it.
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
    /// Stores so far: no two rounds store under the same keys.
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
        // Full before the first round: every store of a round evicts.
        let wanted = plan.sized(smoke: 1 << 20, quick: 128 << 20, full: 128 << 20) / bodySizeBytes
        for number in 0..<wanted { _ = Self.store(number, in: tier, body) }
        base = wanted
    }

    func round() async throws -> [Sample] {
        let tier = tier
        let body = body
        let base = base
        let threads = threads
        // Chunks of a kibi-operation are long with large bodies; a chunk counts what it does.
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
        // An admission rule may refuse: what is asked here is the time, so some must get in.
        try WorkloadFailure.require(outcome.correct > 0, "store: nothing was stored")
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
            return tier.store(entry, nowSeconds: MemoryFixture.nowSeconds) == .stored
        }
    }
}
