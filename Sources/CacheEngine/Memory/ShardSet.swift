import Synchronization

/// The shards of one memory, acting as one cache.
///
/// The budget is common: a store takes its bytes before the entry is linked, and evicts the next
/// victims of any shard until they fit. No two shards' locks are ever held at once.
final class ShardSet: Sendable {
    let shards: [MemoryShard]
    /// The doors of the shards, in the same order.
    let doors: [ShardDoor]
    let commons: ShardCommons

    init(commons: ShardCommons) {
        self.commons = commons
        shards = (0..<commons.shardCount).map { MemoryShard(index: $0, commons: commons) }
        doors = shards.map(\.door)
    }

    /// An entry on its way into a shard.
    struct Plan {
        var entry: Entry
        /// Whether the entry has passed the gate, or does not have to.
        var isJudged = false
    }

    func door(of hash: KeyHash) -> ShardDoor { doors[commons.shard(at: hash.placement)] }

    // MARK: Storing

    /// Links an entry if `isMeant` in place of the occupant.
    ///
    /// It needs room only for the bytes that the occupant does not have, and is judged by these: an
    /// entry that was confirmed must not lose its place to others.
    ///
    /// Returns `nil` if it is not meant.
    func store(
        _ entry: Entry,
        isPinned: Bool,
        onlyIf isMeant: (_ occupant: Entry?) -> Bool,
        whileLocked: () -> Void
    ) -> StoreOutcome? {
        var plan = Plan(entry: entry, isJudged: isPinned)
        let door = door(of: entry.head.hash)
        let charge = entry.chargeBytes
        let takenBytes = max(0, charge - door.occupantBytes(of: entry.head.hash))
        guard takenBytes == 0 || takeRoom(takenBytes, for: &plan) else {
            return refuse(entry, .notAdmitted, onlyIf: isMeant, whileLocked: whileLocked)
        }
        while true {
            let outcome = door.link(
                entry,
                takenBytes: takenBytes,
                isPinned: isPinned,
                onlyIf: isMeant,
                whileLocked: whileLocked
            )
            switch outcome {
            case .inserted:
                settle()
                noteRequest(entry, charge)
                keepWithinCapacity()
                return .stored
            case .replaced:
                keepWithinCapacity()
                return .stored
            case .notMeant:
                commons.used.giveBack(takenBytes)
                return nil
            case .needsLargerTable(let bucketCount):
                let tableBytes = MemoryShardState.sizeBytes(bucketCount: bucketCount)
                plan.isJudged = true
                guard takeRoom(tableBytes, for: &plan) else {
                    commons.used.giveBack(takenBytes)
                    return refuse(entry, .notAdmitted, onlyIf: isMeant, whileLocked: whileLocked)
                }
                door.grow(bucketCount: bucketCount)
            }
        }
    }

    /// Refuses the entry, and removes the occupant of its place.
    func refuse(
        _ entry: Entry,
        _ reason: StoreOutcome.Reason,
        onlyIf isMeant: (_ occupant: Entry?) -> Bool,
        whileLocked: () -> Void
    ) -> StoreOutcome? {
        // Last, when the request is counted.
        defer { noteRequest(entry, entry.chargeBytes) }
        let door = door(of: entry.head.hash)
        var (isRefused, isOccupied) = (false, false)
        // A refused replacement must not leave the old entry readable.
        _ = door.remove(entry.head.hash) { occupant in
            isOccupied = true
            isRefused = isMeant(occupant)
            return isRefused
        } whileLocked: { removed in
            if Mutant.refusesForAnAbsentOne.isOn { isOccupied = false }
            guard removed != nil || !isOccupied && isMeant(nil) else { return }
            isRefused = true
            whileLocked()
        }
        guard isRefused else { return nil }
        door.state.withLock { $0.noteRefusal(of: entry.head.hash.identity) }
        return .refused(reason)
    }

    /// Whether an entry read from disk is worth more than the one that it would displace.
    ///
    /// If it is not, the request is counted, so that a later one finds it worth more. A promotion
    /// that is undone at once would cost a copy, an eviction and a wait for readers.
    func wouldKeep(_ entry: Entry) -> Bool {
        commons.noteTierBehind()
        let charge = entry.chargeBytes
        guard commons.used.excess(with: charge) > -commons.used.slackBytes,
            !commons.shared.promotesFreely,
            entry.head.storageClass != .pinned,
            let index = commons.shardOfLeastRank(in: .main)
        else { return true }
        let identity = entry.head.hash.identity
        let door = door(of: entry.head.hash)
        let worth = door.state.withLock { $0.worth(ofNew: identity, chargeBytes: charge) }
        guard doors[index].wouldDefend(against: worth) else { return true }
        door.state.withLock { $0.noteUse(of: identity) }
        noteRequest(entry, charge)
        return false
    }

    /// Notes the request that brought a newcomer.
    private func noteRequest(_ entry: Entry, _ charge: Int) {
        guard entry.head.storageClass != .pinned else { return }
        commons.shared.clock.tick()
        let hash = entry.head.hash
        guard commons.trial.isSampled(hash.identity), commons.isTrialWatching else { return }
        note(hash, chargeBytes: charge, to: commons.trial, mayCompute: true)
    }

    /// Tells the trial of a request for a sampled key.
    ///
    /// A reader must wait for no lock: if another thread has the shard's, nothing is learned.
    func note(_ hash: KeyHash, chargeBytes: Int, to trial: GateTrial, mayCompute: Bool) {
        let door = door(of: hash)
        trial.note(hash.identity, chargeBytes: chargeBytes, mayCompute: mayCompute) {
            door.state.withLockIfAvailable { $0.use(of: hash) } ?? nil
        }
    }

    // MARK: Making room

    /// Takes `bytes` of the budget and evicts as needed.
    ///
    /// Returns `false` if the entry may not displace others.
    private func takeRoom(_ bytes: Int, for plan: inout Plan) -> Bool {
        guard bytes <= commons.used.capacity else { return false }
        while true {
            switch commons.used.take(bytes) {
            case .taken: return true
            case .mustRelease:
                commons.retired.flush()
                continue
            case .mustEvict: break
            }
            switch makeRoom(bytes, for: &plan) {
            case .made: continue
            case .refused: return false
            case .nothingLeft:
                commons.retired.flush()
                return commons.used.take(bytes) == .taken
            }
        }
    }

    /// Evicts what there is no room for since an entry was linked.
    ///
    /// The capacity may have shrunk after the entry took its bytes, and the bytes of an entry that was
    /// replaced count until its readers have left.
    private func keepWithinCapacity() {
        // Either this thread sees a smaller capacity, or the thread that set it sees the entry.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        guard !Mutant.forgetsASmallerCapacity.isOn else { return }
        while commons.used.excess(with: 0) > 0, evictAny() {}
        if commons.used.current > commons.used.capacity { commons.retired.flush() }
    }

    /// Moves the oldest entries of all windows into the main parts until the windows are within
    /// their share.
    private func settle() {
        let windowBytesMax = AdmissionRule.windowBytesMax(commons.used.capacity)
        while commons.shared.windowBytes.load(ordering: .relaxed) > windowBytesMax,
            let index = commons.shardOfLeastRank(in: .window)
        {
            doors[index].settleCandidate()
        }
    }

    private enum Room { case made, refused, nothingLeft }

    private func makeRoom(_ bytes: Int, for plan: inout Plan) -> Room {
        let windowBytesMax = AdmissionRule.windowBytesMax(commons.used.capacity)
        if bytes > windowBytesMax {
            if !plan.isJudged {
                plan.isJudged = true
                return judge(plan.entry)
            }
            return evictAny() ? .made : .nothingLeft
        }
        let windowBytes = commons.shared.windowBytes.load(ordering: .relaxed)
        guard commons.shared.gateIsOn.load(ordering: .relaxed),
            windowBytes + bytes > windowBytesMax,
            let door = commons.shardOfLeastRank(in: .window).map({ doors[$0] }),
            let candidate = door.candidate()
        else { return evictAny() ? .made : .nothingLeft }
        switch evict(from: .main, against: candidate.priority) {
        case .evicted:
            door.settleCandidate(candidate.hash)
            return .made
        case .isWorthMore:
            door.evictCandidate(candidate.hash)
            return .made
        case .empty, .requeued: return evictAny() ? .made : .nothingLeft
        }
    }

    /// Decides whether an entry too large for the window may displace others.
    ///
    /// If it may, its first victim is evicted at once.
    private func judge(_ entry: Entry) -> Room {
        let charge = entry.chargeBytes
        let identity = entry.head.hash.identity
        let priority = door(of: entry.head.hash).state.withLock {
            $0.priority(ofNew: identity, chargeBytes: charge)
        }
        if charge > AdmissionRule.largeBytesMin(commons.used.capacity),
            !isWorthItsRoom(charge, priority)
        {
            return .refused
        }
        guard commons.shared.gateIsOn.load(ordering: .relaxed) else {
            return evictAny() ? .made : .nothingLeft
        }
        switch evict(from: .main, against: priority) {
        case .evicted: return .made
        case .isWorthMore: return .refused
        case .empty, .requeued: return evictAny() ? .made : .nothingLeft
        }
    }

    /// Whether a large entry is requested more often than all it would displace together.
    private func isWorthItsRoom(_ charge: Int, _ priority: Double) -> Bool {
        let frequency = AdmissionRule.frequency(
            ofPriority: priority,
            chargeBytes: charge,
            commons.shared.objective
        )
        let share = max(0, commons.used.excess(with: charge)) / doors.count
        var sum = 0
        for door in doors where sum < frequency {
            sum += door.state.withLock { $0.frequencySum(ofFirst: share, sumMax: frequency - sum) }
        }
        return sum < frequency
    }

    /// Whether the pinned share has the entry, or room for it.
    ///
    /// Pinned entries that were not used of late yield to it. Otherwise one that nothing leads to any
    /// more, as a variant of a resource that was removed, would hold the share for ever.
    func makePinnedRoom(for entry: Entry) -> Bool {
        let (shared, charge) = (commons.shared, entry.chargeBytes)
        if shared.hasPinnedRoom(for: charge) { return true }
        let hash = entry.head.hash
        if door(of: hash).state.withLock({ $0.isPinned(hash) }) { return true }
        guard charge <= shared.pinnedBytesMax, !Mutant.keepsUnusedPins.isOn else { return false }
        for _ in 0..<AdmissionRule.requeuesMax {
            guard let index = commons.shardOfLeastRank(in: .pinned) else { return false }
            doors[index].yieldPinned()
            if shared.hasPinnedRoom(for: charge) { return true }
        }
        return false
    }

    /// Evicts the next victim.
    ///
    /// Returns `false` if no entry is left.
    private func evictAny() -> Bool {
        while let victim = commons.nextVictim() {
            if case .evicted = evict(from: victim.part, against: nil) { return true }
        }
        return false
    }

    /// Evicts the next victim of the part with the least rank over all shards.
    private func evict(from part: EvictionPart, against rival: Double?) -> ShardEvictionStep {
        var requeues = 0
        while let index = commons.shardOfLeastRank(in: part) {
            let step = doors[index].evictNext(
                in: part,
                against: rival,
                mayRequeue: requeues < AdmissionRule.requeuesMax ? .yes : .no
            )
            switch step {
            case .requeued: requeues += 1
            // Another writer took the victim, and the shard has published its new rank.
            case .empty: continue
            case .evicted, .isWorthMore: return step
            }
        }
        return .empty
    }
}
