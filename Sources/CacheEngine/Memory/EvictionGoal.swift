/// The victims that one batch of a shard should give up.
struct EvictionGoal: Sendable {
    var part: EvictionPart
    /// No more entries than this.
    var countMax: Int
    /// Bytes of the capacity that should be free.
    var spareBytes: Int
    /// Pinned entries are evicted until they take no more than this.
    var pinnedBytesMax: Int
}
