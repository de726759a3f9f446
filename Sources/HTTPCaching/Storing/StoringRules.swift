/// The settings of a cache that the rules of storing and freshness use.
package struct StoringRules: Hashable, Sendable {
    /// A lifetime derived from Last-Modified (RFC 9111 §4.2.2).
    package struct Heuristic: Hashable, Sendable {
        /// The lifetime as a share of the time since Last-Modified, in thousandths.
        package var permille: UInt32
        package var lifetimeSecondsMax: UInt32

        package init(permille: UInt32, lifetimeSecondsMax: UInt32) {
            self.permille = min(permille, 1_000)
            self.lifetimeSecondsMax = min(lifetimeSecondsMax, DeltaSeconds.maximum)
        }

        /// One tenth, as the RFC suggests, and at most one day.
        package static let tenth = Heuristic(permille: 100, lifetimeSecondsMax: 86_400)
    }

    /// How responses that set cookies are treated.
    ///
    /// See `docs/decisions/0013-cookies.md`.
    package enum CookiePolicy: UInt8, Hashable, Sendable {
        case refuse
        /// Stored, without the Set-Cookie lines.
        case strip
        /// Stored with their cookies if the origin gave a lifetime, never by heuristics.
        case store
        /// Stored like any other response.
        case ignore
    }

    package enum RedirectPolicy: UInt8, Hashable, Sendable {
        /// 301 and 308 follow the usual rules; 302, 303 and 307 need explicit freshness.
        case followFreshness
        /// Every redirect is stored, so that a chain can be followed offline.
        case storeAll
    }

    /// Whether to store a response that could neither be reused nor validated.
    package enum UnusablePolicy: UInt8, Hashable, Sendable {
        case refuse
        /// Stored, for caches that serve entries of any age.
        case store
    }

    /// The lifetime of a response with this status and no lifetime of its own.
    package struct NegativeLifetime: Hashable, Sendable {
        package var status: Int
        package var seconds: UInt32

        package init(status: Int, seconds: UInt32) {
            self.status = status
            self.seconds = min(seconds, DeltaSeconds.maximum)
        }
    }

    package enum OriginDirectives: UInt8, Hashable, Sendable {
        case respect
        /// Stores and reuses despite `no-store` and `no-cache`.
        ///
        /// `must-revalidate` still applies, and so do the directives that protect users of a shared
        /// cache from each other.
        case ignore
    }

    package var mode: CacheMode
    /// The names of the targeted fields to obey, the most specific first (RFC 9213).
    package var targetedFields: [String]
    /// `nil` disables heuristics.
    package var heuristic: Heuristic? = .tenth
    package var originDirectives: OriginDirectives = .respect
    /// Whether responses to POST are stored, as those to GET and HEAD are.
    package var storesPost = false
    package var cookies: CookiePolicy
    package var redirects: RedirectPolicy = .followFreshness
    package var unusable: UnusablePolicy
    package var negativeLifetimes: [NegativeLifetime] = []
    /// Replaces the lifetime of every response.
    package var lifetimeOverrideSeconds: UInt32?
    package var lifetimeSecondsMin: UInt32 = 0
    package var lifetimeSecondsMax: UInt32 = DeltaSeconds.maximum

    package init(mode: CacheMode) {
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

    package static let shared = StoringRules(mode: .shared)
    package static let `private` = StoringRules(mode: .private)
}
