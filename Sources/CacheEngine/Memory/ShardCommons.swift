import Synchronization

/// The state that all shards of one memory share.
///
/// Shared are the budget, the retired entries, the policy's age and sketch age, and the trial that
/// sets the gate; and each shard shows the others its table and its next victims.
///
/// `@unchecked Sendable`: the slabs are allocated once and hold only atomics.
final class ShardCommons: @unchecked Sendable {
    let shared: SharedPolicyState
    let used: UsedBytes
    let retired: RetiredEntries
    let shardCount: Int
    private let shardShift: UInt64
    /// The trial that sets the gate.
    ///
    /// It samples the keys of all shards, because those of one shard are too few.
    let trial: GateTrial
    /// Whether entries were read from a tier behind the memory.
    private let hasTierBehind = Atomic(false)
    private let ranks: UnsafeMutablePointer<Atomic<UInt64>>
    private let tables: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>

    init(shared: SharedPolicyState, shardCount: Int) {
        self.shared = shared
        self.shardCount = shardCount
        shardShift = UInt64(64 - shardCount.trailingZeroBitCount)
        trial = GateTrial(shared: shared)
        used = UsedBytes(shared)
        retired = RetiredEntries(usedBytes: used)
        ranks = .allocate(capacity: shardCount * EvictionPart.allCases.count)
        for index in 0..<shardCount * EvictionPart.allCases.count {
            (ranks + index).initialize(to: Atomic(Double.infinity.bitPattern))
        }
        tables = .allocate(capacity: shardCount)
        for index in 0..<shardCount { (tables + index).initialize(to: Atomic(nil)) }
    }

    deinit {
        retired.flush()
        assert(used.pendingBytes == 0, "all that was retired is released")
        assert(used.current == 0, "each byte that was taken is given back")
        ranks.deallocate()
        tables.deallocate()
    }

    @inline(__always)
    func shard(at placement: UInt64) -> Int {
        // A shift by 64, for a single shard, gives zero.
        Int(truncatingIfNeeded: placement >> shardShift)
    }

    /// The table of a shard, for a reader inside its gate.
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
        assert(rank >= 0, "the bits of a negative rank would be the largest")
        (ranks + part.rawValue * shardCount + shard).pointee
            .store(rank.bitPattern, ordering: .relaxed)
    }

    /// Whether requests are told to the trial now.
    ///
    /// With a tier behind the memory every request that the memory cannot answer would be told, at
    /// the cost of an eviction in each shadow cache. There the trial watches one of four ages of the
    /// sketches: long enough to see the memory's contents change, at a quarter of the cost.
    var isTrialWatching: Bool {
        !hasTierBehind.load(ordering: .relaxed)
            || shared.sketchAge.halvings % Self.trialAges == 0
    }

    private static let trialAges: UInt64 = 4

    /// Notes that an entry was read from a tier behind the memory.
    func noteTierBehind() {
        // Read first: a write would take the cache line from all other threads.
        if !hasTierBehind.load(ordering: .relaxed) { hasTierBehind.store(true, ordering: .relaxed) }
    }

    /// The shard that shows the least rank, or `nil` if the part is empty in every shard.
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

    /// Takes over the reference of an unlinked entry.
    func retire(_ reference: Unmanaged<ByteStorage>) {
        let entry = Entry(unchecked: reference.takeUnretainedValue())
        retired.add(reference, chargeBytes: entry.chargeBytes)
    }

    /// Takes over the references of a batch.
    func retire(_ batch: UnlinkedBatch) {
        if batch.count > 0 { retired.add(batch) }
    }

    /// The place of the next victim.
    struct Victim {
        var part: EvictionPart
        var shard: Int
        /// Pinned entries are evicted until they take no more than this.
        var pinnedBytesMax = 0
    }

    /// The place of the entry to evict next, or `nil` if every shard is empty.
    func nextVictim() -> Victim? {
        let pinnedBytesMax = shared.pinnedBytesMax
        if shared.pinnedBytes.load(ordering: .relaxed) > pinnedBytesMax,
            let shard = shardOfLeastRank(in: .pinned)
        {
            return Victim(part: .pinned, shard: shard, pinnedBytesMax: pinnedBytesMax)
        }
        for part in [EvictionPart.main, .window, .pinned] {
            if let shard = shardOfLeastRank(in: part) { return Victim(part: part, shard: shard) }
        }
        return nil
    }
}
