/// The hash of a key in 128 bits.
package struct KeyHash: Hashable, Sendable {
    /// Selects the shards.
    ///
    /// All variants of one resource have the same placement and therefore the same shard.
    package let placement: UInt64
    /// Distinguishes the keys of one shard.
    ///
    /// Two keys may collide, so the full keys are compared.
    package let identity: UInt64

    package init(placement: UInt64, identity: UInt64) {
        self.placement = placement
        self.identity = identity
    }
}
