/// The rules by which a request reads the cache, and by which its response is stored.
///
/// Every policy of Apple's URL loading system and of the classic download caches can be written as
/// such a value; the usual ones have names.
public struct CachePolicy: Hashable, Sendable {
    /// Whether stored responses may be used, also as the base of a condition.
    public var reads: Bool
    /// Whether the request may change the store.
    public var writes: Bool
    /// The effect of a stored response's lifetime.
    public var freshness: Freshness
    /// The action if no stored response may be used.
    public var onMiss: MissAction
    /// The way in which a stored response is confirmed.
    public var validation: Validation
    /// Whether the request carries `no-cache` for the caches between this one and the origin.
    public var bypassesIntermediaries: Bool
    /// The condition under which a stored response replaces a failed fetch.
    public var fallback: Fallback
    /// The lifetime that replaces the origin's; an error other than 404, 410 and 414 keeps its own.
    ///
    /// In a shared cache it also says that others may get what a request with cookies brought.
    public var lifetimeOverride: Duration?
    /// Whether `no-store` and `no-cache` of the origin, and a request's own `no-store`, are obeyed.
    ///
    /// A shared cache stores no `private` response in either case.
    public var respectsOriginDirectives: Bool
    /// The storage class of the stored entry; `nil` for the cache's default.
    public var storageClass: StorageClass?

    /// The effect of a stored response's lifetime.
    public enum Freshness: Hashable, Sendable {
        /// HTTP's rules decide whether it may be used.
        case respect
        /// A response of any age may be used.
        case acceptAnyAge
        /// A response of any age may be used, unless the origin sent `must-revalidate` or
        /// `no-cache`.
        case acceptAnyAgeUnlessForbidden
        /// A response of any age is served at once; a stale one is refreshed in the background.
        case acceptAnyAgeThenRefresh
        /// Every response, also a fresh one, is confirmed before use.
        case alwaysValidate
    }

    /// The action if no stored response may be used.
    public enum MissAction: Hashable, Sendable {
        /// The origin is asked.
        case load
        /// The request fails with `CacheError.Code.notCached`.
        case fail
    }

    /// The way in which a stored response is confirmed.
    public enum Validation: Hashable, Sendable {
        /// One conditional request for the resource is sent.
        case conditional
        /// A HEAD is sent first, and a GET if the HEAD shows a change.
        case head
    }

    /// The condition under which a stored response replaces a failed fetch.
    public enum Fallback: Hashable, Sendable {
        /// HTTP must allow it (`stale-if-error`); it never happens under `alwaysValidate`.
        case whereAllowed
        /// The transport fails or the origin responds with one of `statuses`, and the stored
        /// response has not been stale for longer than `maximumStaleness`.
        ///
        /// For any other status the condition is `whereAllowed`: name 502, 503 and 504 if a stored
        /// response must replace them always.
        case always(statuses: Set<Int> = [], maximumStaleness: Duration? = nil)
        /// A stored response never replaces a failed fetch.
        case never
    }

    /// Creates a policy from its parts; the defaults are HTTP's own rules.
    public init(
        reads: Bool = true,
        writes: Bool = true,
        freshness: Freshness = .respect,
        onMiss: MissAction = .load,
        validation: Validation = .conditional,
        bypassesIntermediaries: Bool = false,
        fallback: Fallback = .whereAllowed,
        lifetimeOverride: Duration? = nil,
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
        self.lifetimeOverride = lifetimeOverride
        self.respectsOriginDirectives = respectsOriginDirectives
        self.storageClass = storageClass
    }
}

extension CachePolicy {
    /// HTTP's own rules: a fresh response is served, a stale one is confirmed with a conditional
    /// request.
    public static let standard = Self()
    /// The stored response is ignored, and the origin's response replaces it.
    public static let reload = Self(reads: false)
    /// A reload past all caches: `reload`, with `no-cache` for the caches between this one and the
    /// origin.
    public static let reloadThroughCaches = Self(
        reads: false,
        bypassesIntermediaries: true
    )
    /// A stored response of any age is served, else the origin's.
    public static let cacheElseLoad = Self(freshness: .acceptAnyAge)
    /// A stored response of any age is served, else an error; the origin is never asked.
    public static let cacheOnly = Self(freshness: .acceptAnyAge, onMiss: .fail)
    /// A stored response is served only after the origin has confirmed it.
    public static let revalidate = Self(freshness: .alwaysValidate)

    /// A stored response is served at once, and refreshed in the background if stale; else the
    /// origin's.
    public static let cachedThenRefresh = Self(freshness: .acceptAnyAgeThenRefresh)
    /// The store is neither read nor changed.
    public static let bypass = Self(reads: false, writes: false)

    /// Returns this policy with some of its parts changed.
    public func with(_ change: (inout Self) -> Void) -> Self {
        var policy = self
        change(&policy)
        return policy
    }
}
