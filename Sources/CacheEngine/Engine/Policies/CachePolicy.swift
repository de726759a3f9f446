/// What a request may take from the cache, and what of its answer may go in: one value.
///
/// Every policy of Apple's URL loading system and of the classic download caches is a point in
/// this space; the named ones are below.
public struct CachePolicy: Hashable, Sendable {
    /// Whether stored answers may be used at all, also as the base of a condition.
    public var reads: Bool
    /// Whether anything stored may change.
    public var writes: Bool
    /// What a stored answer's lifetime means.
    public var freshness: Freshness
    /// What to do when nothing stored may be used.
    public var onMiss: MissAction
    /// How a stored answer is confirmed.
    public var validation: Validation
    /// Whether caches on the way are told to step aside.
    public var bypassesIntermediaries: Bool
    /// When a stored answer of any age stands in for a failed load.
    public var fallback: Fallback
    /// The lifetime to use instead of the origin's, in seconds.
    public var lifetimeOverrideSeconds: Int?
    /// Whether `no-store`, `no-cache` and `private` are obeyed.
    public var respectsOriginDirectives: Bool
    /// The storage class of what is stored, or nil for the cache's default.
    public var storageClass: StorageClass?

    /// What a stored answer's lifetime means.
    public enum Freshness: Hashable, Sendable {
        /// HTTP's rules decide.
        case respect
        /// Any age will do.
        case acceptAnyAge
        /// Any age will do, except where the origin said `must-revalidate` or `no-cache`.
        case acceptAnyAgeUnlessForbidden
        /// Any age is served at once, and a stale one refreshed behind it.
        case acceptAnyAgeThenRefresh
        /// Even a fresh answer is confirmed first.
        case alwaysValidate
    }

    /// What to do when nothing stored may be used.
    public enum MissAction: Hashable, Sendable {
        /// Ask the origin.
        case load
        /// Throw `CacheError.Code.notCached`.
        case fail
    }

    /// How a stored answer is confirmed.
    public enum Validation: Hashable, Sendable {
        /// With one conditional request for the resource itself.
        case conditional
        /// With a HEAD first, and a GET when that shows a change.
        case head
    }

    /// When a stored answer of any age stands in for a failed load.
    public enum Fallback: Hashable, Sendable {
        /// Only where HTTP allows it (`stale-if-error`).
        case whereAllowed
        /// Whenever the transport fails, or the origin answers with one of `statuses`, and the
        /// stored answer is not stale for longer than `staleSecondsMax`.
        case always(statuses: Set<Int> = [], staleSecondsMax: Int? = nil)
        /// Never.
        case never
    }

    /// The point given by its parts; the defaults are HTTP's own rules.
    public init(
        reads: Bool = true,
        writes: Bool = true,
        freshness: Freshness = .respect,
        onMiss: MissAction = .load,
        validation: Validation = .conditional,
        bypassesIntermediaries: Bool = false,
        fallback: Fallback = .whereAllowed,
        lifetimeOverrideSeconds: Int? = nil,
        respectsOriginDirectives: Bool = true,
        storageClass: StorageClass? = nil
    ) {
        self.reads = reads
        self.writes = writes
        self.freshness = freshness
        self.onMiss = onMiss
        self.validation = validation
        self.bypassesIntermediaries = bypassesIntermediaries
        self.fallback = fallback
        self.lifetimeOverrideSeconds = lifetimeOverrideSeconds
        self.respectsOriginDirectives = respectsOriginDirectives
        self.storageClass = storageClass
    }
}

extension CachePolicy {
    /// HTTP's own rules: fresh answers cost nothing, stale ones one conditional request.
    public static let useProtocolCachePolicy = Self()
    /// A stored answer is not looked at; the origin's answer replaces it.
    public static let reloadIgnoringLocalCacheData = Self(reads: false)
    /// The same, and caches on the way are told to step aside.
    public static let reloadIgnoringLocalAndRemoteCacheData = Self(
        reads: false,
        bypassesIntermediaries: true
    )
    /// A stored answer of any age, else the origin's.
    public static let returnCacheDataElseLoad = Self(freshness: .acceptAnyAge)
    /// A stored answer of any age, else an error; the origin is never asked.
    public static let returnCacheDataDontLoad = Self(freshness: .acceptAnyAge, onMiss: .fail)
    /// A stored answer only once the origin has confirmed it.
    public static let reloadRevalidatingCacheData = Self(freshness: .alwaysValidate)

    /// A stored answer of any age, never the origin: `returnCacheDataDontLoad`.
    public static let onlyCached = returnCacheDataDontLoad
    /// A stored answer at once, refreshed behind it when it is stale; else the origin's.
    public static let cachedThenRefresh = Self(freshness: .acceptAnyAgeThenRefresh)
    /// Nothing is read and nothing stored.
    public static let bypass = Self(reads: false, writes: false)

    /// This policy with some of its parts changed.
    public func with(_ change: (inout Self) -> Void) -> Self {
        var policy = self
        change(&policy)
        return policy
    }
}
