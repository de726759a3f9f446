import Synchronization

/// The shards of one memory under one policy, acting as one cache.
///
/// The budget is common: bytes are taken before an entry is linked, evicting whatever should go
/// first in any shard. No two locks are ever held at once.
final class ShardSet<Policy: ReplacementPolicy & ~Copyable>: Sendable {
    let shards: [MemoryShard<Policy>]
    private let commons: ShardCommons
    private let shardShift: UInt64

    init(commons: ShardCommons) {
        self.commons = commons
        shardShift = UInt64(64 - commons.shardCount.trailingZeroBitCount)
        shards = (0..<commons.shardCount).map { MemoryShard(index: $0, commons: commons) }
    }

    /// What is to become of an entry that is to be stored.
    struct Plan {
        var entry: Entry
        var isPinned: Bool
        /// Whether the entry has passed the gate, or need not.
        var isJudged = false
    }

    func shard(of hash: KeyHash) -> MemoryShard<Policy> {
        shards[shards.count == 1 ? 0 : Int(truncatingIfNeeded: hash.placement >> shardShift)]
    }

    /// Puts an entry in place if `isMeant` by what is there; nil when it was not.
    func store(
        _ entry: Entry,
        isPinned: Bool,
        onlyIf isMeant: (_ occupant: Entry?) -> Bool,
        whileLocked: (StoreVerdict) -> Void
    ) -> StoreOutcome? {
        var plan = Plan(entry: entry, isPinned: isPinned, isJudged: isPinned)
        let charge = entry.chargeBytes
        guard takeRoom(charge, for: &plan) else {
            return refuse(entry, .notAdmitted, onlyIf: isMeant, whileLocked: whileLocked)
        }
        while true {
            let outcome = shard(of: entry.head.hash).link(
                entry,
                isPinned: isPinned,
                onlyIf: isMeant,
                whileLocked: { whileLocked(.stored(replaced: $0)) }
            )
            switch outcome {
            case .inserted:
                settle()
                noteRequest(entry, charge)
                return .stored
            case .replaced:
                return .stored
            case .notMeant:
                commons.used.giveBack(charge)
                return nil
            case .needsLargerTable(let bucketCount):
                let tableBytes = MemoryShardState<Policy>.sizeBytes(bucketCount: bucketCount)
                plan.isJudged = true
                guard takeRoom(tableBytes, for: &plan) else {
                    commons.used.giveBack(charge)
                    return refuse(entry, .notAdmitted, onlyIf: isMeant, whileLocked: whileLocked)
                }
                shard(of: entry.head.hash).grow(bucketCount: bucketCount)
            }
        }
    }

    /// Does not keep the entry, nor what was in its place.
    func refuse(
        _ entry: Entry,
        _ reason: StoreOutcome.Reason,
        onlyIf isMeant: (_ occupant: Entry?) -> Bool,
        whileLocked: (StoreVerdict) -> Void
    ) -> StoreOutcome? {
        noteRequest(entry, entry.chargeBytes)
        let shard = shard(of: entry.head.hash)
        var isRefused = false
        // A refused replacement must not leave the old entry readable.
        _ = shard.remove(entry.head.hash) { occupant in
            isRefused = isMeant(occupant)
            return isRefused
        } whileLocked: { removed in
            guard removed != nil || isMeant(nil) else { return }
            isRefused = true
            whileLocked(.refused(reason, removed: removed))
        }
        guard isRefused else { return nil }
        shard.state.withLock { $0.noteRefusal(of: entry.head.hash.identity) }
        return .refused(reason)
    }

    /// Evicts until no more than the capacity is in use.
    func shrinkToCapacity() {
        while commons.used.excess(with: 0) > 0 {
            guard evictAny() else { break }
        }
        commons.limbo.flush()
    }

    private func noteRequest(_ entry: Entry, _ charge: Int) {
        guard let trial = commons.trial, entry.head.storageClass != .pinned else { return }
        let identity = entry.head.hash.identity
        if trial.isSampled(identity) { trial.note(identity, chargeBytes: charge) }
    }

    // MARK: Making room

    /// Takes `bytes` of the budget, evicting as needed; false when the entry may not displace others.
    private func takeRoom(_ bytes: Int, for plan: inout Plan) -> Bool {
        guard bytes <= commons.used.capacity else { return false }
        while true {
            switch commons.used.take(bytes) {
            case .taken: return true
            case .mustRelease:
                commons.limbo.flush()
                continue
            case .mustEvict: break
            }
            switch makeRoom(bytes, for: &plan) {
            case .made: continue
            case .refused: return false
            case .nothingLeft:
                commons.limbo.flush()
                return commons.used.take(bytes) == .taken
            }
        }
    }

    /// Lets the oldest in front of any shard enter the main part while there are too many in front.
    private func settle() {
        guard commons.trial != nil else { return }
        let windowBytesMax = AdmissionRule.windowBytesMax(commons.used.capacity)
        while commons.shared.probationBytes.load(ordering: .relaxed) > windowBytesMax,
            let index = commons.shardOfLeastRank(in: .probation)
        {
            shards[index].settleCandidate()
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
        let inFront = commons.shared.probationBytes.load(ordering: .relaxed)
        let isGateOn = commons.trial != nil && commons.shared.gateIsOn.load(ordering: .relaxed)
        guard isGateOn, inFront + bytes > windowBytesMax,
            let shard = commons.shardOfLeastRank(in: .probation).map({ shards[$0] }),
            let candidate = shard.candidate()
        else { return evictAny() ? .made : .nothingLeft }
        switch evict(from: .main, against: candidate.priority) {
        case .evicted:
            shard.settleCandidate(candidate.hash)
            return .made
        case .isWorthMore:
            shard.evictCandidate(candidate.hash)
            return .made
        case .empty, .requeued: return evictAny() ? .made : .nothingLeft
        }
    }

    /// Whether an entry too large for the window may displace others; the first goes at once.
    private func judge(_ entry: Entry) -> Room {
        let charge = entry.chargeBytes
        let identity = entry.head.hash.identity
        let priority = shard(of: entry.head.hash).state.withLock {
            $0.priority(ofNew: identity, chargeBytes: charge)
        }
        guard let priority else { return evictAny() ? .made : .nothingLeft }
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

    /// Whether a large entry is asked for more often than all it would displace together.
    private func isWorthItsRoom(_ charge: Int, _ priority: Double) -> Bool {
        let frequency = AdmissionRule.frequency(priority, charge, commons.shared.objective)
        let share = max(0, commons.used.excess(with: charge)) / shards.count
        var sum = 0
        for shard in shards where sum < frequency {
            sum += shard.state.withLock { $0.frequencySum(ofFirst: share, sumMax: frequency - sum) }
        }
        return sum < frequency
    }

    /// Evicts what should go first; false when there is nothing left.
    private func evictAny() -> Bool {
        if commons.shared.pinnedBytes.load(ordering: .relaxed) > commons.shared.pinnedBytesMax,
            case .evicted = evict(from: .pinned, against: nil)
        {
            return true
        }
        let first: EvictionPart =
            Policy.evictsProbationFirst(commons.shared) ? .probation : .main
        for part in [first, first == .main ? .probation : .main, .pinned] {
            if case .evicted = evict(from: part, against: nil) { return true }
        }
        return false
    }

    private func evict(from part: EvictionPart, against rival: Double?) -> ShardEvictionStep {
        var requeues = 0
        while let index = commons.shardOfLeastRank(in: part) {
            let step = shards[index].evictNext(
                in: part,
                against: rival,
                mayRequeue: requeues < AdmissionRule.requeuesMax ? .yes : .no
            )
            switch step {
            case .requeued: requeues += 1
            // Another writer was faster; the shard has shown its new rank.
            case .empty: continue
            case .evicted, .isWorthMore: return step
            }
        }
        return .empty
    }
}
