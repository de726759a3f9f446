import Synchronization

/// Weighted S3-FIFO: a small queue sieves newcomers, a main queue gives second chances, a ghost
/// remembers who was sieved out (https://doi.org/10.1145/3600006.3613147).
///
/// Ours: sizes are bytes; the queues of all shards act as one, by stamps from a common sequence.
///
///     new ──▶ small ──hit twice──▶ main ◀─┐
///               │                    │    │ hit: back, a hit fewer
///               ▼                    ├────┘
///             ghost ──asked again──▶ main
struct S3FIFOPolicy: ReplacementPolicy, ~Copyable {
    private static let small = 0
    private static let main = 1
    private static let pinned = 2
    private static let queueCount = 3
    /// Hits a slot can have to its credit.
    private static let hitsMax = 3

    private var queues: SlotQueues
    private var ghost: GhostTable
    private let shared: SharedPolicyState

    init(slotCount: Int, shared: SharedPolicyState) {
        queues = SlotQueues(queueCount: Self.queueCount, slotCount: slotCount)
        ghost = GhostTable(entries: slotCount)
        self.shared = shared
    }

    static func sizeBytes(slotCount: Int) -> Int {
        slotCount * SlotQueues.slotSizeBytes + queueCount * SlotQueues.queueSizeBytes
            + GhostTable.sizeBytes(entries: slotCount)
    }

    static func evictsProbationFirst(_ shared: SharedPolicyState) -> Bool {
        let probation = shared.probationBytes.load(ordering: .relaxed)
        return probation > shared.capacityBytes.load(ordering: .relaxed) / 10
    }

    func rank(of part: EvictionPart) -> Double { queues.tailStamp(of: part.rawValue) }

    mutating func insert(
        _ slot: Int,
        chargeBytes: Int,
        isPinned: Bool,
        _ facts: some SlotFacts
    ) {
        if isPinned {
            queues.push(slot, to: Self.pinned, stamp: shared.nextSequence())
        } else if ghost.take(facts.identity(of: slot)) {
            queues.push(slot, to: Self.main, stamp: shared.nextSequence())
        } else {
            shared.probationBytes.add(chargeBytes, ordering: .relaxed)
            queues.push(slot, to: Self.small, stamp: shared.nextSequence())
        }
    }

    mutating func changeCharge(of slot: Int, from old: Int, to new: Int) {
        guard queues.queue(of: slot) == Self.small else { return }
        shared.probationBytes.add(new - old, ordering: .relaxed)
    }

    mutating func remove(_ slot: Int, chargeBytes: Int) {
        if queues.queue(of: slot) == Self.small {
            shared.probationBytes.subtract(chargeBytes, ordering: .relaxed)
        }
        queues.remove(slot)
    }

    mutating func next(
        in part: EvictionPart,
        against _: Double?,
        mayRequeue: MayRequeue,
        _ facts: some SlotFacts
    ) -> EvictionStep {
        guard let slot = queues.tail(of: part.rawValue) else { return .empty }
        let hits = min(Self.hitsMax, facts.hits(of: slot))
        switch part {
        case .probation where hits > 1 && mayRequeue == .yes:
            remove(slot, chargeBytes: facts.chargeBytes(of: slot))
            facts.setHits(of: slot, to: 0)
            queues.push(slot, to: Self.main, stamp: shared.nextSequence())
            return .requeued
        case .main where hits > 0 && mayRequeue == .yes:
            queues.remove(slot)
            facts.setHits(of: slot, to: hits - 1)
            queues.push(slot, to: Self.main, stamp: shared.nextSequence())
            return .requeued
        case .probation:
            ghost.remember(facts.identity(of: slot))
            return .evict(slot)
        case .main, .pinned:
            return .evict(slot)
        }
    }

    mutating func noteRefusal(of _: UInt64) {}
    func priority(ofNew _: UInt64, chargeBytes _: Int) -> Double? { nil }
    func candidate(_: some SlotFacts) -> (slot: Int, priority: Double)? { nil }
    mutating func settleCandidate(_: some SlotFacts) {}
    func frequencySum(ofFirst _: Int, sumMax _: Int, _: some SlotFacts) -> Int { 0 }

    mutating func grow(slotCount: Int, _ move: (Int) -> Int) {
        let larger = SlotQueues(queueCount: Self.queueCount, slotCount: slotCount)
        queues.moveAll(to: larger, move)
        queues = larger
        ghost = GhostTable(entries: slotCount)
    }
}

/// Who was lately sieved out, as fingerprints with their turn.
///
/// Invariant: a place holds the fingerprint and turn of the last key sent there. A key is
/// remembered for as many turns as there are places.
struct GhostTable: ~Copyable {
    private struct Place {
        var fingerprint: UInt32
        var turn: UInt32
    }

    private let places: UnsafeMutablePointer<Place>
    private let count: Int
    private var turn: UInt32

    init(entries: Int) {
        count = Self.placeCount(entries: entries)
        places = .allocate(capacity: count)
        places.initialize(repeating: Place(fingerprint: 0, turn: 0), count: count)
        // So that the empty places are too old to be remembered.
        turn = UInt32(count) + 1
    }

    deinit { places.deallocate() }

    static func sizeBytes(entries: Int) -> Int {
        placeCount(entries: entries) * MemoryLayout<Place>.stride
    }

    mutating func remember(_ identity: UInt64) {
        turn &+= 1
        places[place(of: identity)] = Place(fingerprint: Self.fingerprint(identity), turn: turn)
    }

    /// Whether the key is remembered; it is not any more.
    mutating func take(_ identity: UInt64) -> Bool {
        let place = place(of: identity)
        guard places[place].fingerprint == Self.fingerprint(identity),
            turn &- places[place].turn <= UInt32(count)
        else { return false }
        places[place].turn = turn &- UInt32(count) &- 1
        return true
    }

    private func place(of identity: UInt64) -> Int {
        Int((identity >> 20) & UInt64(count - 1))
    }

    private static func fingerprint(_ identity: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: identity ^ identity >> 32) | 1
    }

    private static func placeCount(entries: Int) -> Int {
        var count = 64
        while count < entries { count *= 2 }
        return count
    }
}
