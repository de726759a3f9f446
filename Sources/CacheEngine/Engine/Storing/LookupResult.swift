import HTTPCaching

/// The stored response that one request selects, or the reason why there is none.
struct LookupResult: Sendable {
    /// The key under which the request's own variant is, or will be, stored.
    let key: RequestKey
    /// The stored response that the request selects.
    let stored: StoredResponse?
    /// The tier that held it.
    let tier: CacheInfo.Tier?
    /// The reason why no response was selected, in the words of RFC 9211.
    let miss: CacheStatus.Forward

    init(_ stored: StoredResponse, in tier: CacheInfo.Tier, under key: RequestKey) {
        self.key = key
        self.stored = stored
        self.tier = tier
        miss = .uriMiss
    }

    private init(_ key: RequestKey, _ miss: CacheStatus.Forward) {
        self.key = key
        self.miss = miss
        stored = nil
        tier = nil
    }

    static func nothing(_ key: RequestKey, _ miss: CacheStatus.Forward = .uriMiss) -> Self {
        Self(key, miss)
    }
}
