import Synchronization

/// What a policy may ask about a slot; whoever holds the entries answers.
protocol SlotFacts {
    func identity(of slot: Int) -> UInt64
    func chargeBytes(of slot: Int) -> Int
    /// Hits since `clearHits`, up to a small limit.
    func hits(of slot: Int) -> Int
    func setHits(of slot: Int, to hits: Int)
}

/// A rule for what goes first, as the state one shard keeps for it.
///
/// The hit path knows no policy: it counts in the slot, and the policy looks at the count when the
/// slot's turn comes. Queues are per shard; their stamps are comparable over all shards, so that the
/// tier can take the victim from whichever shard holds the one that should go first.
protocol ReplacementPolicy: ~Copyable {
    /// State for `slotCount` slots.
    init(slotCount: Int, shared: SharedPolicyState)

    /// Bytes used for each slot, and beside them.
    static func sizeBytes(slotCount: Int) -> Int

    /// Whether the next to go should come from probation rather than from the main part.
    static func evictsProbationFirst(_ shared: SharedPolicyState) -> Bool

    /// The stamp of the slot that would go first, infinite when there is none.
    func rank(of part: EvictionPart) -> Double

    /// A new entry is in `slot`.
    mutating func insert(_ slot: Int, chargeBytes: Int, isPinned: Bool, _ facts: some SlotFacts)
    /// The entry in `slot` was replaced and now costs something else.
    mutating func changeCharge(of slot: Int, from old: Int, to new: Int)
    /// The entry in `slot` is leaving for a reason of its own.
    mutating func remove(_ slot: Int, chargeBytes: Int)
    /// Gives the slot whose turn it is another life, or names it as the victim.
    mutating func next(
        in part: EvictionPart,
        against rival: Double?,
        mayRequeue: MayRequeue,
        _ facts: some SlotFacts
    ) -> EvictionStep

    /// A newcomer was turned away; next time it is known to have been asked for before.
    mutating func noteRefusal(of identity: UInt64)
    /// The priority a newcomer would have, or nil where newcomers are not judged.
    mutating func priority(ofNew identity: UInt64, chargeBytes: Int) -> Double?
    /// The slot in front of the main part that must now enter it or leave, and its priority.
    mutating func candidate(_ facts: some SlotFacts) -> (slot: Int, priority: Double)?
    /// Lets the slot that `candidate` names enter the main part.
    mutating func settleCandidate(_ facts: some SlotFacts)
    /// The summed frequency of the first to go, until `bytes` are reached or `sumMax` is.
    mutating func frequencySum(ofFirst bytes: Int, sumMax: Int, _ facts: some SlotFacts) -> Int
    /// The same state for more slots.
    mutating func grow(slotCount: Int, _ move: (Int) -> Int)
}

/// Where in a shard a victim is looked for.
enum EvictionPart: Int, Sendable, CaseIterable {
    case probation = 0
    case main = 1
    case pinned = 2
}

/// Whether a slot that was hit may stay; no, when too many have already stayed.
enum MayRequeue: Sendable {
    case yes
    case no
}

/// What came of looking for a victim.
enum EvictionStep: Sendable {
    /// The slot in turn was hit since and stays.
    case requeued
    /// The slot must go.
    case evict(Int)
    /// The slot in turn is worth more than its rival.
    case isWorthMore
    /// There is nothing.
    case empty
}

/// What the shards of one memory have in common for their policy.
final class SharedPolicyState: Sendable {
    /// What the policy tries to keep high.
    let objective: EvictionPolicy.Objective
    /// When what was counted fades.
    let sketchAge = SketchAge()
    /// Bytes the entries may use in all.
    let capacityBytes: Atomic<Int>
    /// Bytes in front of the main part, or in its small queue.
    let probationBytes = Atomic(0)
    /// Bytes of pinned entries.
    let pinnedBytes = Atomic(0)
    /// How many of those are exempt from eviction.
    var pinnedBytesMax: Int {
        Int(Double(capacityBytes.load(ordering: .relaxed)) * pinnedShareMax)
    }
    private let pinnedShareMax: Double
    /// The age: the stamp of the last victim, as the bits of a `Double`.
    private let ageBits = Atomic<UInt64>(0)
    private let sequence = Atomic<UInt64>(0)
    /// Whether newcomers must be worth more than the victim.
    let gateIsOn = Atomic(true)

    init(
        objective: EvictionPolicy.Objective,
        capacityBytes: Int,
        pinnedShareMax: Double = 0
    ) {
        self.pinnedShareMax = pinnedShareMax
        self.objective = objective
        self.capacityBytes = Atomic(capacityBytes)
    }

    var age: Double { Double(bitPattern: ageBits.load(ordering: .relaxed)) }

    /// The age never falls.
    func raiseAge(to stamp: Double) {
        // The bits of positive doubles are ordered as the doubles are.
        _ = ageBits.max(stamp.bitPattern, ordering: .relaxed)
    }

    func nextSequence() -> Double {
        Double(sequence.wrappingAdd(1, ordering: .relaxed).newValue)
    }
}
