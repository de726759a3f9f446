/// The settings of a cache that the rules of storing and freshness use.
public struct StoringRules: Hashable, Sendable {
    /// A lifetime derived from Last-Modified (RFC 9111 §4.2.2).
    public struct Heuristic: Hashable, Sendable {
        /// The lifetime as a share of the time since Last-Modified, in thousandths.
        public var permille: UInt32
        public var lifetimeSecondsMax: UInt32

        public init(permille: UInt32, lifetimeSecondsMax: UInt32) {
            self.permille = min(permille, 1_000)
            self.lifetimeSecondsMax = min(lifetimeSecondsMax, DeltaSeconds.maximum)
        }

        /// One tenth, as the RFC suggests, and at most one day.
        public static let tenth = Heuristic(permille: 100, lifetimeSecondsMax: 86_400)
    }

    /// How responses that set cookies are treated.
    ///
    /// See `docs/decisions/0013-cookies.md`.
    public enum CookiePolicy: UInt8, Hashable, Sendable {
        case refuse
        /// Stored, without the Set-Cookie lines.
        case strip
        /// Stored with their cookies if the origin gave a lifetime, never by heuristics or by the
        /// settings of the cache.
        case store
        /// Stored like any other response.
        case ignore
    }

    public enum RedirectPolicy: UInt8, Hashable, Sendable {
        /// 301 and 308 follow the usual rules; 302, 303 and 307 need explicit freshness.
        case followFreshness
        /// Every redirect is stored, so that a chain can be followed offline.
        case storeAll
    }

    /// Whether to store a response that could neither be reused nor validated.
    public enum UnusablePolicy: UInt8, Hashable, Sendable {
        case refuse
        /// Stored, for caches that serve entries of any age.
        case store
    }

    /// The lifetime of a response with this status and no lifetime of its own.
    ///
    /// It says nothing about the clients that may get the response.
    public struct StatusLifetime: Hashable, Sendable {
        public var status: Int
        public var seconds: UInt32

        public init(status: Int, seconds: UInt32) {
            self.status = status
            self.seconds = min(seconds, DeltaSeconds.maximum)
        }
    }

    public enum OriginDirectives: UInt8, Hashable, Sendable {
        case respect
        /// Stores and reuses despite `no-store` and `no-cache`.
        ///
        /// `must-revalidate` still applies, and so do the directives that protect users of a shared
        /// cache from each other.
        case ignore
    }

    public var mode: CacheMode
    /// The names of the targeted fields to obey, the most specific first (RFC 9213).
    public var targetedFields: [String]
    /// `nil` disables heuristics.
    public var heuristic: Heuristic? = .tenth
    public var originDirectives: OriginDirectives = .respect
    /// Whether responses to POST are stored, as those to GET and HEAD are.
    public var storesPost = false
    public var cookies: CookiePolicy
    public var redirects: RedirectPolicy = .followFreshness
    public var unusable: UnusablePolicy
    public var statusLifetimes: [StatusLifetime] = []
    /// Replaces the lifetime of every response.
    ///
    /// It is the owner's word for the request, and counts like the origin's where cookies ask for a
    /// statement. See `docs/decisions/0013-cookies.md`.
    public var lifetimeOverrideSeconds: UInt32?
    /// Raises shorter lifetimes; it says nothing about the clients that may get the response.
    public var lifetimeSecondsMin: UInt32 = 0
    public var lifetimeSecondsMax: UInt32 = DeltaSeconds.maximum

    public init(mode: CacheMode) {
        self.mode = mode
        switch mode {
        case .shared:
            targetedFields = ["CDN-Cache-Control"]
            cookies = .refuse
            unusable = .refuse
        case .private:
            targetedFields = []
            cookies = .ignore
            unusable = .store
        }
    }

    /// Whether the rules store responses to the method.
    func stores(_ method: MethodKind) -> Bool {
        method == .get || method == .head || storesPost && method == .post
    }

    public static let shared = StoringRules(mode: .shared)
    public static let `private` = StoringRules(mode: .private)
}
