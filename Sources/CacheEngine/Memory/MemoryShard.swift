import Synchronization

/// One slice of the key space: its table, its queues and the lock that guards them.
///
/// Reading needs neither the actor nor the lock. Storing and removing are synchronous and take the
/// lock for one entry; what walks the shard is isolated to the actor or takes the lock for a batch.
actor MemoryShard<Policy: ReplacementPolicy & ~Copyable> {
    /// Guards everything the shard holds; nothing is awaited or freed under it.
    nonisolated let state: Mutex<MemoryShardState<Policy>>
    private nonisolated let index: Int
    private nonisolated let commons: ShardCommons

    init(index: Int, commons: ShardCommons) {
        self.index = index
        self.commons = commons
        let state = MemoryShardState<Policy>(
            bucketCount: shardBucketCountMin,
            shared: commons.shared
        )
        commons.used.takeAnyway(state.sizeBytes)
        commons.publish(state.table, of: index)
        self.state = Mutex(state)
    }

    deinit {
        state.withLock { state in
            for slot in 0..<state.table.slotCount { state.table.entry(at: slot)?.release() }
            state.table.deallocate()
        }
    }

    /// The entry of this hash, found under the lock and not counted.
    nonisolated func lockedEntry(_ hash: KeyHash) -> Entry? {
        state.withLock { state in state.table.slot(of: hash).flatMap { state.entry(at: $0) } }
    }

    /// Removes what has expired.
    func sweepExpired(nowSeconds: UInt32) -> RemovalCount {
        let count = removeEach { $0.isExpired(nowSeconds: nowSeconds) }
        state.withLock { $0.counters.expirations += count.entries }
        return count
    }

    /// Shows the other shards what would go first here.
    nonisolated func publishRanks(_ state: borrowing MemoryShardState<Policy>) {
        for part in EvictionPart.allCases {
            commons.publishRank(state.policy.rank(of: part), of: part, in: index)
        }
    }

    /// Puts an entry, whose bytes have been taken, in its place.
    nonisolated func link(
        _ entry: Entry,
        isPinned: Bool,
        onlyIf isMeant: (_ occupant: Entry?) -> Bool,
        whileLocked: (_ replaced: Entry?) -> Void
    ) -> LinkOutcome {
        let hash = entry.head.hash
        var outgoing: Unmanaged<ByteStorage>?
        let outcome = state.withLock { state -> LinkOutcome in
            if let slot = state.table.slot(of: hash) {
                let occupant = state.entry(at: slot)
                guard isMeant(occupant) else { return .notMeant }
                outgoing = state.replace(slot, by: entry, hash)
                whileLocked(occupant)
                publishRanks(state)
                return .replaced
            }
            guard isMeant(nil) else { return .notMeant }
            if state.isFull { return .needsLargerTable(bucketCount: state.nextBucketCount) }
            state.insert(entry, hash, isPinned: isPinned)
            whileLocked(nil)
            publishRanks(state)
            return .inserted
        }
        if let outgoing { commons.retire(outgoing) }
        return outcome
    }

    /// Makes the table as large as that, whose bytes have been taken, if it still must grow.
    nonisolated func grow(bucketCount: Int) {
        let old = state.withLock { state -> (table: EntryTable, sizeBytes: Int)? in
            guard state.isFull, state.table.bucketCount < bucketCount else { return nil }
            let sizeBytes = state.sizeBytes
            let old = state.grow(bucketCount: bucketCount)
            commons.publish(state.table, of: index)
            return (old, sizeBytes)
        }
        if let old {
            commons.limbo.add(old.table, chargeBytes: old.sizeBytes)
        } else {
            commons.used.giveBack(MemoryShardState<Policy>.sizeBytes(bucketCount: bucketCount))
        }
    }

    /// Removes what is in the key's place if `isMeant`; `whileLocked` runs once in any case.
    nonisolated func remove(
        _ hash: KeyHash,
        onlyIf isMeant: (Entry) -> Bool,
        whileLocked: (Entry?) -> Void
    ) -> Entry? {
        var outgoing: Unmanaged<ByteStorage>?
        let removed = state.withLock { state -> Entry? in
            guard let slot = state.table.slot(of: hash), let entry = state.entry(at: slot),
                isMeant(entry)
            else {
                whileLocked(nil)
                return nil
            }
            outgoing = state.remove(slot)
            whileLocked(entry)
            publishRanks(state)
            return entry
        }
        if let outgoing { commons.retire(outgoing) }
        return removed
    }

    /// Evicts the slot in turn, or gives it another life.
    nonisolated func evictNext(
        in part: EvictionPart,
        against rival: Double?,
        mayRequeue: MayRequeue
    ) -> ShardEvictionStep {
        let (step, reference) = state.withLock {
            state -> (ShardEvictionStep, Unmanaged<ByteStorage>?) in
            defer { publishRanks(state) }
            switch state.next(in: part, against: rival, mayRequeue: mayRequeue) {
            case .requeued: return (.requeued, nil)
            case .isWorthMore: return (.isWorthMore, nil)
            case .empty: return (.empty, nil)
            case .evict(let slot): return (.evicted, evict(slot, &state))
            }
        }
        retireEvicted(reference)
        return step
    }

    /// The entry in front of the main part that must be judged now, and its priority.
    nonisolated func candidate() -> (hash: KeyHash, priority: Double)? {
        state.withLock { state in
            guard let (slot, priority) = state.candidate(), let entry = state.entry(at: slot) else {
                return nil
            }
            return (entry.head.hash, priority)
        }
    }

    /// Lets the oldest entry in front enter the main part, if it still is that one.
    nonisolated func settleCandidate(_ hash: KeyHash? = nil) {
        state.withLock { state in
            guard let (slot, _) = state.candidate(), let entry = state.entry(at: slot),
                hash == nil || hash == entry.head.hash
            else { return }
            state.settleCandidate()
            publishRanks(state)
        }
    }

    /// Turns away the entry in front, if it still is the one that was judged.
    nonisolated func evictCandidate(_ hash: KeyHash) {
        let reference = state.withLock { state -> Unmanaged<ByteStorage>? in
            guard let (slot, _) = state.candidate(), state.entry(at: slot)?.head.hash == hash else {
                return nil
            }
            defer { publishRanks(state) }
            return evict(slot, &state)
        }
        retireEvicted(reference)
    }

    /// Removes every entry that `isMeant`, looking at few per lock hold.
    nonisolated func removeEach(_ isMeant: (Entry) -> Bool) -> RemovalCount {
        var count = RemovalCount()
        var start = 0
        var table: UnsafeMutableRawPointer?
        while true {
            var outgoing: [Unmanaged<ByteStorage>] = []
            let isDone = state.withLock { state -> Bool in
                // A table that has grown meanwhile has its entries elsewhere: begin again.
                if table != state.table.base { (table, start) = (state.table.base, 0) }
                let end = min(start + removalBatchMax, state.table.slotCount)
                for slot in start..<end {
                    guard let entry = state.entry(at: slot), isMeant(entry) else { continue }
                    count.entries += 1
                    count.bytes += entry.sizeBytes
                    outgoing.append(state.remove(slot))
                }
                start = end
                if !outgoing.isEmpty { publishRanks(state) }
                return end == state.table.slotCount
            }
            for reference in outgoing { commons.retire(reference) }
            if isDone { return count }
        }
    }

    private nonisolated func evict(
        _ slot: Int,
        _ state: inout MemoryShardState<Policy>
    ) -> Unmanaged<ByteStorage> {
        let reference = state.remove(slot)
        state.counters.evictions += 1
        state.counters.evictedBytes += Entry(unchecked: reference.takeUnretainedValue()).sizeBytes
        return reference
    }

    private nonisolated func retireEvicted(_ reference: Unmanaged<ByteStorage>?) {
        guard let reference else { return }
        commons.onEviction?(Entry(unchecked: reference.takeUnretainedValue()))
        commons.retire(reference)
    }
}

/// What became of an attempt to put an entry in its place.
enum LinkOutcome: Equatable {
    case inserted
    case replaced
    case notMeant
    case needsLargerTable(bucketCount: Int)
}

/// What one step towards an eviction did.
enum ShardEvictionStep {
    case evicted
    case requeued
    case isWorthMore
    case empty
}

/// Slots looked at while the lock is held, so that a writer never waits long.
private let removalBatchMax = 256
/// Where a table begins.
private let shardBucketCountMin = 8
