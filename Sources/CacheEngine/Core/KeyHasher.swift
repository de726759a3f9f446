/// Hashes keys with a secret seed, so that an attacker cannot aim keys at one shard or slot.
///
/// The hash has two lanes of folded 64 × 64 → 128 bit multiplication, as in wyhash
/// (https://github.com/wangyi-fudan/wyhash). The seed enters both factors of every step.
package struct KeyHasher: Hashable, Sendable {
    package let seed: KeyHash

    package init(seed: KeyHash) { self.seed = seed }

    /// A hasher with a random seed.
    package static func random() -> Self { Self(seed: .random()) }

    package func hash(_ key: UnsafeRawBufferPointer) -> KeyHash {
        let count = key.count
        var first = seed.placement ^ Self.odd1
        var second = seed.identity ^ Self.odd2
        var offset = 0
        while count - offset >= 16 {
            let low = key.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            let high = key.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
            first = Self.fold(low ^ first, high ^ seed.identity)
            second = Self.fold(high ^ second, low ^ seed.placement)
            offset += 16
        }
        let (low, high) = Self.tail(of: key, from: offset)
        first = Self.fold(low ^ first, high ^ seed.identity ^ UInt64(count))
        second = Self.fold(high ^ second, low ^ seed.placement ^ UInt64(count))
        return KeyHash(
            placement: Self.fold(first ^ Self.odd2, second ^ seed.placement),
            identity: Self.fold(second ^ Self.odd1, first ^ seed.identity)
        )
    }

    /// The hash of `base` narrowed by `detail`; it has the shard of `base`.
    package func hash(_ detail: UnsafeRawBufferPointer, within base: KeyHash) -> KeyHash {
        let inner = hash(detail)
        return KeyHash(
            placement: base.placement,
            identity: Self.fold(inner.identity ^ base.identity, inner.placement ^ Self.odd1)
        )
    }

    private static let odd1: UInt64 = 0xA076_1D64_78BD_642F
    private static let odd2: UInt64 = 0xE703_7ED1_A0B4_28DB

    private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        // The factors are added, because a zero factor would otherwise erase the previous state.
        return product.high ^ product.low ^ (left &+ right)
    }

    /// The last 0 to 15 bytes as two words.
    private static func tail(
        of key: UnsafeRawBufferPointer,
        from offset: Int
    ) -> (low: UInt64, high: UInt64) {
        let left = key.count - offset
        if left >= 8 {
            let high = key.loadUnaligned(fromByteOffset: key.count - 8, as: UInt64.self)
            return (key.loadUnaligned(fromByteOffset: offset, as: UInt64.self), high)
        }
        if left >= 4 {
            let high = key.loadUnaligned(fromByteOffset: key.count - 4, as: UInt32.self)
            let low = key.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return (UInt64(low), UInt64(high))
        }
        if left == 0 { return (0, 0) }
        let low = UInt64(key[offset]) << 16 | UInt64(key[offset + left / 2]) << 8
        return (low | UInt64(key[key.count - 1]), 0)
    }
}

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

    /// Random bits: a seed, or the identity of a directory.
    static func random() -> Self {
        Self(placement: .random(in: 0 ... .max), identity: .random(in: 0 ... .max))
    }

    /// The identity alone tells nearly all keys apart.
    package func hash(into hasher: inout Hasher) { hasher.combine(identity) }
}
