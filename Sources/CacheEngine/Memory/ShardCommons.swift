import Synchronization

/// What all shards of one memory share: the budget, the limbo, and what each shows the others.
///
/// `@unchecked Sendable`: the slabs are allocated once and hold only atomics.
final class ShardCommons: @unchecked Sendable {
    let shared: SharedPolicyState
    let used: UsedBytes
    let limbo: Limbo
    let shardCount: Int
    /// The trial that sets the gate; nil where the policy has none.
    let trial: GateTrial?
    /// Told of each entry that made way for another, outside any lock.
    let onEviction: (@Sendable (Entry) -> Void)?
    private let ranks: UnsafeMutablePointer<Atomic<UInt64>>
    private let tables: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>

    init(
        shared: SharedPolicyState,
        shardCount: Int,
        trial: GateTrial?,
        onEviction: (@Sendable (Entry) -> Void)?
    ) {
        self.shared = shared
        self.shardCount = shardCount
        self.trial = trial
        self.onEviction = onEviction
        used = UsedBytes(shared)
        limbo = Limbo(usedBytes: used)
        ranks = .allocate(capacity: shardCount * EvictionPart.allCases.count)
        for index in 0..<shardCount * EvictionPart.allCases.count {
            (ranks + index).initialize(to: Atomic(Double.infinity.bitPattern))
        }
        tables = .allocate(capacity: shardCount)
        for index in 0..<shardCount { (tables + index).initialize(to: Atomic(nil)) }
    }

    deinit {
        limbo.flush()
        ranks.deallocate()
        tables.deallocate()
    }

    /// The table of a shard, for readers inside a gate.
    @inline(__always)
    func table(of shard: Int) -> EntryTable {
        // Every shard publishes its table before the memory is handed out.
        EntryTable(
            base: (tables + shard).pointee.load(ordering: .acquiring).unsafelyUnwrapped
        )
    }

    func publish(_ table: EntryTable, of shard: Int) {
        (tables + shard).pointee.store(table.base, ordering: .releasing)
    }

    func publishRank(_ rank: Double, of part: EvictionPart, in shard: Int) {
        (ranks + part.rawValue * shardCount + shard).pointee
            .store(rank.bitPattern, ordering: .relaxed)
    }

    /// The shard that shows the least rank, if any has something.
    func shardOfLeastRank(in part: EvictionPart) -> Int? {
        let first = ranks + part.rawValue * shardCount
        var least = Double.infinity.bitPattern
        var found: Int?
        for shard in 0..<shardCount {
            // The bits of positive doubles are ordered as the doubles are.
            let rank = (first + shard).pointee.load(ordering: .relaxed)
            if rank < least { (least, found) = (rank, shard) }
        }
        return found
    }

    /// Takes over the reference of an entry that left its table.
    func retire(_ reference: Unmanaged<ByteStorage>) {
        let entry = Entry(unchecked: reference.takeUnretainedValue())
        limbo.add(reference, chargeBytes: entry.chargeBytes)
    }
}
