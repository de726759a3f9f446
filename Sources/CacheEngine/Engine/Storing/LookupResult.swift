import HTTPCaching

/// The stored response that one request selects, or the reason why there is none.
struct LookupResult: Sendable {
    /// The key of the stored response; without one, the key under which the request's own variant
    /// will be stored.
    let key: RequestKey
    /// The stored response that the request selects.
    let stored: StoredResponse?
    /// The tier that held it.
    let tier: CacheInfo.Tier?
    /// The reason why no response was selected, in the words of RFC 9211.
    let miss: CacheStatus.Forward
    /// Whether there may be a stored response, or a more recent one, that was not found: a look-up was
    /// refused, or not made.
    let isUncertain: Bool
    private let newest: NewestKey?

    /// Indirect, because it is rare, and frames that wait hold results.
    private indirect enum NewestKey {
        case key(RequestKey)
    }

    /// `newest` is the key of the request's own variant by the newest set of selecting fields, if an
    /// older set may have selected `stored`.
    init(
        _ stored: StoredResponse,
        in tier: CacheInfo.Tier,
        under key: RequestKey,
        newest: RequestKey? = nil,
        isUncertain: Bool = false
    ) {
        assert(stored.entry.head.hash.identity == key.hash.identity, "found under its own key")
        self.key = key
        self.stored = stored
        self.tier = tier
        miss = .uriMiss
        self.isUncertain = isUncertain
        if let newest, newest != key {
            self.newest = .key(newest)
        } else {
            self.newest = nil
        }
    }

    private init(_ key: RequestKey, _ miss: CacheStatus.Forward, isUncertain: Bool) {
        self.key = key
        self.miss = miss
        self.isUncertain = isUncertain
        stored = nil
        tier = nil
        newest = nil
    }

    /// The key of the flight that fetches the request's own variant: that of the newest set of
    /// selecting fields.
    ///
    /// A response that an older set selected may be confirmed for requests that the newest set keeps
    /// apart. Under its key they would wait for each other, one after the other.
    var flightKey: RequestKey {
        if case .key(let key)? = newest { return key }
        return key
    }

    /// Whether an older set of selecting fields selected the stored response.
    var isOfOlderSet: Bool { newest != nil }

    /// Whether this request selects a response that is stored under this key, as far as is known.
    func selects(_ hash: KeyHash) -> Bool { hash == key.hash || hash == flightKey.hash }

    static func nothing(
        _ key: RequestKey,
        _ miss: CacheStatus.Forward = .uriMiss,
        isUncertain: Bool = false
    ) -> Self {
        Self(key, miss, isUncertain: isUncertain)
    }
}
