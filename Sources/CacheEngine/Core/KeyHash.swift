/// Where a key lives and which key it is, as 128 bits.
package struct KeyHash: Hashable, Sendable {
    /// Chooses the shards.
    ///
    /// All variants of one resource share it, so they share their shard.
    package let placement: UInt64
    /// Tells keys of one shard apart.
    ///
    /// Two keys may still collide: the full key decides.
    package let identity: UInt64

    package init(placement: UInt64, identity: UInt64) {
        self.placement = placement
        self.identity = identity
    }
}
