/// The facts about a slot that a policy needs.
///
/// The owner of the entries answers.
protocol SlotFacts {
    func identity(of slot: Int) -> UInt64
    func chargeBytes(of slot: Int) -> Int
    /// Whether the entry is one that its owner wants to keep (`StorageClass.pinned`).
    func isOfPinnedClass(_ slot: Int) -> Bool
    /// Hits since the count was last set, up to a small limit.
    func hits(of slot: Int) -> Int
    func setHits(of slot: Int, to hits: Int)
}

/// The part of a shard that a victim is taken from.
enum EvictionPart: Int, Sendable, CaseIterable {
    /// Newcomers that are not judged yet.
    case window = 0
    case main = 1
    case pinned = 2
}

/// Whether a slot with hits may stay: `.no` once too many have stayed in a row.
enum MayRequeue: Sendable {
    case yes
    case no
}

/// The result of one step towards a victim.
enum EvictionStep: Sendable {
    /// The next slot had hits, or is exempt now, and stays.
    case requeued
    /// This slot must be evicted.
    case evict(Int)
    /// The next slot is worth more than its rival.
    case isWorthMore
    /// The part holds no slot.
    case empty
}
