import HTTPCaching

/// The index of a resource whose responses vary: the request fields that select a variant.
///
/// Each variant is an entry of its own, whose key holds the index's nonce. Replacing or removing
/// the index therefore makes all its variants unreachable at once.
///
///     0  kind u8 = 2 · sets u8 · variants u16 · roll words u32 · nonce u64
///     16 (count u16 · Vary)* · roll                             the newest set first
struct VariantIndex: Hashable, Sendable {
    static let kind: UInt8 = 2
    /// Different `Vary` lists kept of one resource; each costs one look-up.
    static let setsMax = 4
    /// The most variants that can be counted.
    static let variantsMax = Int(UInt16.max)

    let nonce: UInt64
    private(set) var sets: [Vary]
    /// Variants stored since the nonce was drawn.
    private(set) var variants: Int

    init(_ vary: Vary, nonce: UInt64) {
        self.nonce = nonce
        sets = [vary]
        variants = 0
    }

    /// Returns `nil` if the entry is not an index, or if `metadata(_:)` cannot have made its bytes.
    init?(_ entry: Entry) {
        let read = entry.withMetadata { bytes -> VariantIndex? in
            guard bytes.count >= 16, bytes[0] == Self.kind else { return nil }
            var index = VariantIndex(
                sets: [],
                nonce: bytes.littleEndian(at: 8),
                variants: Int(bytes.littleEndian(at: 2, as: UInt16.self))
            )
            var offset = 16
            for _ in 0..<Int(bytes[1]) {
                guard bytes.count - offset >= 2 else { return nil }
                let count = Int(bytes.littleEndian(at: offset, as: UInt16.self))
                guard bytes.count - offset - 2 >= count,
                    let vary = Vary(
                        decoding: .init(rebasing: bytes[offset + 2..<offset + 2 + count])
                    )
                else { return nil }
                guard !index.sets.contains(vary) else { return nil }
                index.sets.append(vary)
                offset += 2 + count
            }
            let words = Int(bytes.littleEndian(at: 4, as: UInt32.self))
            // Each set costs every request a look-up.
            let isWritten =
                (1...Self.setsMax).contains(index.sets.count)
                && (1...VariantRoll.wordsMax).contains(words)
                && bytes.count - offset == 4 * words
            return isWritten || Mutant.readsAnyIndex.isOn ? index : nil
        }
        guard let read else { return nil }
        self = read
    }

    private init(sets: [Vary], nonce: UInt64, variants: Int) {
        self.sets = sets
        self.nonce = nonce
        self.variants = variants
    }

    /// The hash under which the roll counts a variant.
    ///
    /// It is the same on every machine of a fleet, because the index is shared. The nonce is random,
    /// so that no client can choose variants of one hash.
    func hash(_ variant: RequestKey) -> KeyHash {
        let hasher = KeyHasher(seed: KeyHash(placement: nonce, identity: nonce))
        return variant.bytes.withUnsafeBytes { hasher.hash($0) }
    }

    static func isIndex(_ entry: Entry) -> Bool {
        entry.withMetadata { $0.count >= 16 && $0[0] == kind }
    }

    /// Counts one more variant selected by `vary`.
    ///
    /// Past `maximumVariants` a new nonce forgets all variants together: a resource with an
    /// unlimited number of variants must not fill the cache.
    mutating func add(_ vary: Vary, maximumVariants: Int, nonce: @autoclosure () -> UInt64) {
        guard variants < Self.limit(maximumVariants) || Mutant.variantsWithoutNumber.isOn else {
            self = VariantIndex(sets: [vary], nonce: nonce(), variants: 1)
            return
        }
        variants += 1
        prefer(vary)
    }

    /// The setting, within what an index can count.
    static func limit(_ maximumVariants: Int) -> Int { min(max(1, maximumVariants), variantsMax) }

    /// Moves the set that the last response named to the front.
    mutating func prefer(_ vary: Vary) {
        sets.removeAll { $0 == vary }
        sets.insert(vary, at: 0)
        if sets.count > Self.setsMax { sets.removeLast() }
    }

    func metadata(_ roll: VariantRoll) -> [UInt8] {
        assert((1...Self.setsMax).contains(sets.count), "an index that can be read")
        var bytes: [UInt8] = [Self.kind, UInt8(sets.count)]
        bytes.append(littleEndian: UInt16(clamping: variants))
        bytes.append(littleEndian: UInt32(roll.words.count))
        bytes.append(littleEndian: nonce)
        for vary in sets {
            var encoded: [UInt8] = []
            vary.encode(to: &encoded)
            bytes.append(littleEndian: UInt16(encoded.count))
            bytes.append(contentsOf: encoded)
        }
        for word in roll.words { bytes.append(littleEndian: word) }
        return bytes
    }
}

/// The request fields that select a response, and the key of the variant for which it was fetched.
struct Variance: Sendable {
    let index: VariantIndex
    let vary: Vary
    let key: RequestKey
    /// Whether the variant is stored; `false` if the resource has too many variants.
    var isStored = true
}
