import HTTPCaching

/// What a look-up found for one request.
struct Selection: Sendable {
    /// The key under which the request's own variant is, or will be.
    let key: RequestKey
    /// Why nothing was selected, in the words of RFC 9211.
    let miss: CacheStatus.Forward
    private let found: Found?

    /// Out of line: those who wait together have mostly found nothing.
    private final class Found: Sendable {
        let stored: StoredResponse
        let tier: CacheInfo.Tier

        init(_ stored: StoredResponse, _ tier: CacheInfo.Tier) {
            self.stored = stored
            self.tier = tier
        }
    }

    /// The stored response that the request selects.
    init(_ stored: StoredResponse, in tier: CacheInfo.Tier, under key: RequestKey) {
        self.key = key
        miss = .uriMiss
        found = Found(stored, tier)
    }

    private init(_ key: RequestKey, _ miss: CacheStatus.Forward) {
        self.key = key
        self.miss = miss
        found = nil
    }

    var stored: StoredResponse? { found?.stored }
    var tier: CacheInfo.Tier? { found?.tier }

    static func nothing(_ key: RequestKey, _ miss: CacheStatus.Forward = .uriMiss) -> Selection {
        Selection(key, miss)
    }
}

extension HTTPCache {
    /// Looks in memory and behind it, through the index of variants where there is one.
    ///
    /// `fields` are those of the request.
    func select(_ key: RequestKey, _ fields: FieldSection) async -> Selection {
        guard let (primary, tier) = await tiers.entry(key) else { return .nothing(key) }
        if let stored = StoredResponse(primary) {
            return Selection(stored, in: tier, under: key)
        }
        guard let index = VariantIndex(primary.entry) else { return .nothing(key) }
        let candidates = index.sets.map { variantKey(key, index, $0, fields) }
        for candidate in candidates {
            if let (entry, tier) = await tiers.entry(candidate),
                let stored = StoredResponse(entry)
            {
                return Selection(stored, in: tier, under: candidate)
            }
        }
        return .nothing(candidates[0], .varyMiss)
    }

    /// The variant that the request selects by the index of its resource, in memory alone.
    func variantInMemory(
        _ primary: Entry,
        _ request: CacheRequest,
        nowSeconds: UInt32
    ) -> Entry? {
        guard let index = VariantIndex(primary) else { return nil }
        let key = RequestKey(bytes: primary.withKey { [UInt8]($0) }, hash: primary.head.hash)
        let fields = request.fields.section
        for vary in index.sets {
            let candidate = variantKey(key, index, vary, fields)
            let found = candidate.bytes.withUnsafeBytes { bytes in
                tiers.entryInMemory(candidate.hash, bytes, nowSeconds: nowSeconds)
            }
            if let found { return found }
        }
        return nil
    }

    func variantKey(
        _ key: RequestKey,
        _ index: VariantIndex,
        _ vary: Vary,
        _ fields: FieldSection
    ) -> RequestKey {
        let detail = VariantKey(vary, request: fields, rules: variantRules)
        return key.variant(detail.bytes, nonce: index.nonce, hasher: tiers.hasher)
    }
}
