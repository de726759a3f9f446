import Synchronization

/// A cache of identities and sizes without data, which simulates a rule on the same requests.
///
/// Invariants:
/// 1. `usedBytes` is the sum of the charges of the slots in use, at most `capacityBytes`.
/// 2. A slot is in use if and only if its number is in `index` exactly once; `freeSlots` holds the
///    others.
///
/// Not `Copyable`: it owns its slabs.
struct ShadowCache: ~Copyable {
    private struct Facts: SlotFacts {
        let identities: UnsafeMutablePointer<UInt64>
        let charges: UnsafeMutablePointer<Int>
        let counts: UnsafeMutablePointer<UInt8>

        func identity(of slot: Int) -> UInt64 { identities[slot] }
        func chargeBytes(of slot: Int) -> Int { charges[slot] }
        func hits(of slot: Int) -> Int { Int(counts[slot]) }
        func isOfPinnedClass(_ slot: Int) -> Bool { false }
        func setHits(of slot: Int, to hits: Int) { counts[slot] = UInt8(hits) }
    }

    /// Whether newcomers must be worth more than the victim.
    enum Gate { case open, closed }

    private static let none = UInt32.max
    static func sizeBytes(slotCount: Int) -> Int {
        SizeAwarePolicy.sizeBytes(slotCount: slotCount) + slotCount * 37
    }

    private let gate: Gate
    private let shared: SharedPolicyState
    private var policy: SizeAwarePolicy
    private let facts: Facts
    private let slotCount: Int
    private let freeSlots: UnsafeMutablePointer<UInt32>
    private var freeCount: Int
    private let index: UnsafeMutablePointer<UInt32>
    private let indexMask: Int
    private(set) var usedBytes = 0

    /// A shadow of the memory that has the state `real`, with a gate that never moves.
    init(slotCount: Int, of real: SharedPolicyState, gate: Gate) {
        self.gate = gate
        self.slotCount = slotCount
        shared = SharedPolicyState(
            objective: real.objective,
            capacityBytes: real.capacityBytes.load(ordering: .relaxed),
            clock: real.clock,
            rates: real.rates
        )
        shared.gateIsOn.store(gate == .closed, ordering: .relaxed)
        policy = SizeAwarePolicy(slotCount: slotCount, shared: shared)
        facts = Facts(
            identities: .allocate(capacity: slotCount),
            charges: .allocate(capacity: slotCount),
            counts: .allocate(capacity: slotCount)
        )
        facts.identities.initialize(repeating: 0, count: slotCount)
        facts.charges.initialize(repeating: 0, count: slotCount)
        facts.counts.initialize(repeating: 0, count: slotCount)
        freeSlots = .allocate(capacity: slotCount)
        for slot in 0..<slotCount { (freeSlots + slot).initialize(to: UInt32(slot)) }
        freeCount = slotCount
        var places = 2
        while places < slotCount * 2 { places *= 2 }
        index = .allocate(capacity: places)
        index.initialize(repeating: Self.none, count: places)
        indexMask = places - 1
    }

    deinit {
        facts.identities.deallocate()
        facts.charges.deallocate()
        facts.counts.deallocate()
        freeSlots.deallocate()
        index.deallocate()
    }

    var capacityBytes: Int { shared.capacityBytes.load(ordering: .relaxed) }
    /// Whether the next newcomer may find no slot.
    var isOutOfSlots: Bool { freeCount == 0 }

    /// Requests the key and keeps it; returns `true` if it was present.
    mutating func access(_ identity: UInt64, chargeBytes: Int) -> Bool {
        if let slot = find(identity) {
            facts.counts[slot] = min(15, facts.counts[slot] + 1)
            return true
        }
        guard chargeBytes <= capacityBytes, makeRoom(for: identity, chargeBytes), freeCount > 0
        else {
            policy.noteUse(of: identity)
            return false
        }
        freeCount -= 1
        let slot = Int(freeSlots[freeCount])
        facts.identities[slot] = identity
        facts.charges[slot] = chargeBytes
        facts.counts[slot] = 0
        usedBytes += chargeBytes
        link(slot)
        assert(find(identity) == slot, "it is found where it was put")
        policy.insert(slot, chargeBytes: chargeBytes, isPinned: false, facts)
        policy.settle(facts)
        return false
    }

    /// Changes the capacity and drops the keys that `isKept` rejects.
    mutating func resize(capacityBytes: Int, keeping isKept: (UInt64) -> Bool) {
        for slot in 0..<slotCount
        where find(facts.identities[slot]) == slot && !isKept(facts.identities[slot]) {
            drop(slot)
        }
        shared.capacityBytes.store(capacityBytes, ordering: .relaxed)
        while usedBytes > capacityBytes, evictOne(against: nil) != .empty {}
    }

    private enum Step { case evicted, isWorthMore, empty }

    private mutating func makeRoom(for identity: UInt64, _ chargeBytes: Int) -> Bool {
        while usedBytes + chargeBytes > capacityBytes {
            let isDirect = chargeBytes > AdmissionRule.windowBytesMax(capacityBytes)
            if isDirect { return makeRoomForLarge(identity, chargeBytes) }
            guard gate == .closed, isWindowFull(with: chargeBytes),
                let (slot, priority) = policy.candidate(facts)
            else {
                if evictOne(against: nil) == .empty, evictWindow() == .empty { return true }
                continue
            }
            switch evictOne(against: priority) {
            case .evicted: policy.settle(facts)
            case .isWorthMore: drop(slot)
            case .empty: if evictWindow() == .empty { return true }
            }
        }
        return true
    }

    /// Makes room for an entry that is too large for the window.
    ///
    /// The newcomer is judged once; if it is admitted, it evicts as much as it needs.
    private mutating func makeRoomForLarge(_ identity: UInt64, _ chargeBytes: Int) -> Bool {
        let priority = policy.priority(ofNew: identity, chargeBytes: chargeBytes)
        if !isWorthItsRoom(chargeBytes, priority) { return false }
        if gate == .closed, evictOne(against: priority) == .isWorthMore { return false }
        while usedBytes + chargeBytes > capacityBytes, evictOne(against: nil) != .empty {}
        while usedBytes + chargeBytes > capacityBytes, evictWindow() != .empty {}
        return true
    }

    private func isWindowFull(with chargeBytes: Int) -> Bool {
        shared.windowBytes.load(ordering: .relaxed) + chargeBytes
            > AdmissionRule.windowBytesMax(capacityBytes)
    }

    private mutating func isWorthItsRoom(_ chargeBytes: Int, _ priority: Double) -> Bool {
        guard chargeBytes > AdmissionRule.largeBytesMin(capacityBytes) else { return true }
        let frequency = AdmissionRule.frequency(
            ofPriority: priority,
            chargeBytes: chargeBytes,
            shared.objective
        )
        let needed = usedBytes + chargeBytes - capacityBytes
        return policy.frequencySum(ofFirst: needed, sumMax: frequency, facts) < frequency
    }

    private mutating func evictOne(against rival: Double?) -> Step {
        var requeues = 0
        while true {
            let mayRequeue: MayRequeue = requeues < AdmissionRule.requeuesMax ? .yes : .no
            switch policy.next(in: .main, against: rival, mayRequeue: mayRequeue, facts) {
            case .requeued: requeues += 1
            case .evict(let slot):
                drop(slot)
                return .evicted
            case .isWorthMore: return .isWorthMore
            case .empty: return .empty
            }
        }
    }

    private mutating func evictWindow() -> Step {
        guard
            case .evict(let slot) = policy.next(
                in: .window,
                against: nil,
                mayRequeue: .no,
                facts
            )
        else { return .empty }
        drop(slot)
        return .evicted
    }

    private mutating func drop(_ slot: Int) {
        policy.remove(slot, chargeBytes: facts.charges[slot])
        usedBytes -= facts.charges[slot]
        assert(usedBytes >= 0 && freeCount < slotCount, "only a slot in use is dropped")
        unlink(slot)
        assert(find(facts.identities[slot]) == nil, "it is found no more")
        freeSlots[freeCount] = UInt32(slot)
        freeCount += 1
    }

    // MARK: The index: linear probing; removal closes holes by shifting back

    private func home(of identity: UInt64) -> Int {
        Int(truncatingIfNeeded: (identity &* 0x9E37_79B9_7F4A_7C15) >> 32) & indexMask
    }

    private func find(_ identity: UInt64) -> Int? {
        var place = home(of: identity)
        while index[place] != Self.none {
            let slot = Int(index[place])
            if facts.identities[slot] == identity { return slot }
            place = (place + 1) & indexMask
        }
        return nil
    }

    private func link(_ slot: Int) {
        var place = home(of: facts.identities[slot])
        while index[place] != Self.none { place = (place + 1) & indexMask }
        index[place] = UInt32(slot)
    }

    private func unlink(_ slot: Int) {
        var hole = home(of: facts.identities[slot])
        while index[hole] != UInt32(slot) { hole = (hole + 1) & indexMask }
        var place = (hole + 1) & indexMask
        while index[place] != Self.none {
            let home = home(of: facts.identities[Int(index[place])])
            if (place &- home) & indexMask >= (place &- hole) & indexMask {
                index[hole] = index[place]
                hole = place
            }
            place = (place + 1) & indexMask
        }
        index[hole] = Self.none
    }
}
