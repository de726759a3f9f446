import Synchronization

/// The synchronous door of one shard: everything that takes the shard's lock.
///
/// Stores and removals take the lock for one entry. The shard's actor, and removals of many keys,
/// take it for a batch of `batchMax` slots at most, and the growth of the table takes it once for all
/// slots. Readers come in through `ShardCommons.table` and take no lock.
final class ShardDoor: Sendable {
    /// Slots that one hold of the lock may look at, so that a writer waits for a few microseconds.
    ///
    /// `grow` holds it longer: it moves the whole table.
    static let batchMax = 256
    /// The size of a new table.
    private static let bucketCountMin = 8

    /// Guards the shard.
    ///
    /// Nothing is awaited, freed or woken while it is held.
    let state: Mutex<MemoryShardState>
    private let index: Int
    private let commons: ShardCommons

    init(index: Int, commons: ShardCommons) {
        self.index = index
        self.commons = commons
        let state = MemoryShardState(bucketCount: Self.bucketCountMin, shared: commons.shared)
        commons.used.takeAnyway(state.sizeBytes)
        commons.publish(state.table, of: index)
        self.state = Mutex(state)
    }

    deinit {
        let bytes = state.withLock { state in
            var (count, sum) = (0, state.sizeBytes)
            for slot in 0..<state.table.slotCount {
                guard let reference = state.table.entry(at: slot) else { continue }
                sum += Entry(unchecked: reference.takeUnretainedValue()).chargeBytes
                reference.release()
                count += 1
            }
            assert(count == state.count, "each entry is counted once")
            state.table.deallocate()
            return sum
        }
        commons.used.giveBack(bytes)
    }

    /// The events that happened inside the lock.
    var counters: MemoryCounters { state.withLock { $0.counters } }

    /// The entry of this hash, found under the lock and not counted.
    func lockedEntry(_ hash: KeyHash) -> Entry? {
        state.withLock { state in state.table.slot(of: hash).flatMap { state.entry(at: $0) } }
    }

    // MARK: One entry

    /// The bytes that the entry of this hash is charged for; 0 without an entry.
    func occupantBytes(of hash: KeyHash) -> Int {
        guard !Mutant.judgesWhatIsThere.isOn else { return 0 }
        return state.withLock { state in
            state.table.slot(of: hash).flatMap { state.entry(at: $0)?.chargeBytes } ?? 0
        }
    }

    /// Links an entry, of whose bytes `takenBytes` have been taken from the budget.
    ///
    /// The rest is taken whether it fits or not: it was an occupant's, which gives it back once its
    /// readers have left.
    func link(
        _ entry: Entry,
        takenBytes: Int,
        isPinned: Bool,
        onlyIf isMeant: (_ occupant: Entry?) -> Bool,
        whileLocked: () -> Void
    ) -> LinkOutcome {
        let hash = entry.head.hash
        let restBytes = entry.chargeBytes - takenBytes
        var outgoing: Unmanaged<ByteStorage>?
        let outcome = state.withLock { state -> LinkOutcome in
            if let slot = state.table.slot(of: hash) {
                let occupant = state.entry(at: slot)
                guard isMeant(occupant) else { return .notMeant }
                commons.used.takeAnyway(restBytes)
                outgoing = state.replace(slot, by: entry, hash, isPinned: isPinned)
                whileLocked()
                publishRanks(&state)
                return .replaced
            }
            guard isMeant(nil) else { return .notMeant }
            if state.isFull { return .needsLargerTable(bucketCount: state.nextBucketCount) }
            commons.used.takeAnyway(restBytes)
            state.insert(entry, hash, isPinned: isPinned)
            whileLocked()
            publishRanks(&state)
            return .inserted
        }
        if let outgoing { commons.retire(outgoing) }
        return outcome
    }

    /// Grows the table to `bucketCount`, whose bytes have been taken, if it is still full.
    func grow(bucketCount: Int) {
        let old = state.withLock { state -> (table: EntryTable, sizeBytes: Int)? in
            guard state.isFull, state.table.bucketCount < bucketCount else { return nil }
            let sizeBytes = state.sizeBytes
            let old = state.grow(bucketCount: bucketCount)
            commons.publish(state.table, of: index)
            return (old, sizeBytes)
        }
        if let old {
            commons.retired.add(old.table, chargeBytes: old.sizeBytes)
        } else {
            commons.used.giveBack(MemoryShardState.sizeBytes(bucketCount: bucketCount))
        }
    }

    /// Removes the entry of this hash if `isMeant`.
    ///
    /// `isPermitted` is called first; if it returns `false`, nothing changes. Otherwise `whileLocked`
    /// runs once, found or not.
    func remove(
        _ hash: KeyHash,
        onlyIf isMeant: (Entry) -> Bool,
        whileLocked: (Entry?) -> Void,
        ifPermitted isPermitted: () -> Bool = { true }
    ) -> Entry? {
        var outgoing: Unmanaged<ByteStorage>?
        let removed = state.withLock { state -> Entry? in
            guard isPermitted() else { return nil }
            guard let slot = state.table.slot(of: hash), let entry = state.entry(at: slot),
                isMeant(entry)
            else {
                whileLocked(nil)
                return nil
            }
            outgoing = state.remove(slot)
            whileLocked(entry)
            publishRanks(&state)
            return entry
        }
        if let outgoing { commons.retire(outgoing) }
        return removed
    }

    // MARK: Making room for one entry

    /// Evicts the next victim of `part`, or requeues it.
    func evictNext(
        in part: EvictionPart,
        against rival: Double?,
        mayRequeue: MayRequeue
    ) -> ShardEvictionStep {
        let (step, reference) = state.withLock {
            state -> (ShardEvictionStep, Unmanaged<ByteStorage>?) in
            defer { publishRanks(&state) }
            switch state.next(in: part, against: rival, mayRequeue: mayRequeue) {
            case .requeued: return (.requeued, nil)
            case .isWorthMore: return (.isWorthMore, nil)
            case .empty: return (.empty, nil)
            case .evict(let slot): return (.evicted, evict(slot, &state))
            }
        }
        if let reference { commons.retire(reference) }
        return step
    }

    /// Whether the next victim of the main part is worth as much as a newcomer of that worth.
    func wouldDefend(against rival: SizeAwarePolicy.Worth) -> Bool {
        state.withLock { state in
            defer { publishRanks(&state) }
            return state.wouldDefend(against: rival)
        }
    }

    /// Ends the exemption of the entry that has had it for longest, unless it was hit since.
    func yieldPinned() {
        state.withLock { state in
            state.yieldPinned()
            publishRanks(&state)
        }
    }

    /// The oldest entry of the window, which must be judged now, and its priority.
    func candidate() -> (hash: KeyHash, priority: Double)? {
        state.withLock { state in
            guard let (slot, priority) = state.candidate(), let entry = state.entry(at: slot) else {
                return nil
            }
            return (entry.head.hash, priority)
        }
    }

    /// Moves the oldest entry of the window into the main part, if it has this hash.
    func settleCandidate(_ hash: KeyHash? = nil) {
        state.withLock { state in
            guard let (slot, _) = state.candidate(), let entry = state.entry(at: slot),
                hash == nil || hash == entry.head.hash
            else { return }
            state.settleCandidate()
            publishRanks(&state)
        }
    }

    /// Evicts the oldest entry of the window, if it has this hash and is not exempt now.
    func evictCandidate(_ hash: KeyHash) {
        let reference = state.withLock { state -> Unmanaged<ByteStorage>? in
            guard let (slot, _) = state.candidate(), state.entry(at: slot)?.head.hash == hash else {
                return nil
            }
            defer { publishRanks(&state) }
            return state.exempt(slot) ? nil : evict(slot, &state)
        }
        if let reference { commons.retire(reference) }
    }

    // MARK: Batches

    /// Unlinks the entries that `isMeant` among the next slots of `walk`.
    func unlinkNext(of walk: inout SlotWalk, where isMeant: (Entry) -> Bool) -> UnlinkedBatch {
        var batch = UnlinkedBatch()
        state.withLock { state in
            for slot in walk.advance(in: state.table, atMost: Self.batchMax) {
                guard let entry = state.entry(at: slot), isMeant(entry) else { continue }
                batch.add(state.remove(slot))
            }
            if batch.count > 0 { publishRanks(&state) }
        }
        return batch
    }

    /// Unlinks victims towards `goal`.
    ///
    /// `requeues` counts the slots in a row that kept their place because they had hits.
    func unlinkVictims(_ goal: EvictionGoal, _ requeues: inout Int) -> UnlinkedBatch {
        var batch = UnlinkedBatch()
        state.withLock { state in
            defer { publishRanks(&state) }
            for _ in 0..<Self.batchMax {
                guard batch.count < goal.countMax, !isReached(goal, batch.chargeBytes) else {
                    return
                }
                let mayRequeue: MayRequeue = requeues < AdmissionRule.requeuesMax ? .yes : .no
                switch state.next(in: goal.part, against: nil, mayRequeue: mayRequeue) {
                case .requeued: requeues += 1
                case .evict(let slot):
                    requeues = 0
                    batch.add(state.remove(slot))
                case .isWorthMore, .empty: return
                }
            }
        }
        return batch
    }

    private func isReached(_ goal: EvictionGoal, _ unlinkedBytes: Int) -> Bool {
        if commons.used.excess(with: goal.spareBytes) <= unlinkedBytes { return true }
        return goal.part == .pinned
            && commons.shared.pinnedBytes.load(ordering: .relaxed) <= goal.pinnedBytesMax
    }

    // MARK: Inside

    /// Shows the other shards the next victim of each part.
    private func publishRanks(_ state: inout MemoryShardState) {
        for part in EvictionPart.allCases {
            commons.publishRank(state.rank(of: part), of: part, in: index)
        }
    }

    private func evict(_ slot: Int, _ state: inout MemoryShardState) -> Unmanaged<ByteStorage> {
        state.counters.evictions += 1
        return state.remove(slot)
    }
}

/// The result of an attempt to link an entry.
enum LinkOutcome: Equatable {
    case inserted
    case replaced
    case notMeant
    case needsLargerTable(bucketCount: Int)
}

/// The result of one step towards an eviction.
enum ShardEvictionStep {
    case evicted
    case requeued
    case isWorthMore
    case empty
}
