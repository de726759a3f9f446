/// How a cache is set up, as far as the rules of storing and freshness go.
package struct StoringRules: Hashable, Sendable {
    /// Guessing a lifetime from Last-Modified (RFC 9111 §4.2.2).
    package struct Heuristic: Hashable, Sendable {
        /// The share of the time since Last-Modified, in thousandths.
        package var permille: UInt32
        package var lifetimeSecondsMax: UInt32

        package init(permille: UInt32, lifetimeSecondsMax: UInt32) {
            self.permille = min(permille, 1_000)
            self.lifetimeSecondsMax = min(lifetimeSecondsMax, DeltaSeconds.maximum)
        }

        /// A tenth, as the RFC suggests, and a day at most.
        package static let tenth = Heuristic(permille: 100, lifetimeSecondsMax: 86_400)
    }

    /// What becomes of responses that set cookies.
    ///
    /// See `docs/decisions/0013-cookies.md`.
    package enum CookiePolicy: UInt8, Hashable, Sendable {
        /// Stored with their cookies when the origin gave a lifetime; never by heuristics.
        case storeWhenExplicitlyFresh
        /// Stored only when the origin said `public` or `s-maxage`.
        case storeWhenPublic
        /// Stored, without the Set-Cookie lines.
        case storeWithoutCookies
        case refuse
        /// Stored like any other response.
        case ignore
    }

    package enum RedirectPolicy: UInt8, Hashable, Sendable {
        /// 301 and 308 like any response; 302, 303 and 307 when explicitly fresh.
        case followFreshness
        /// All of them, so that a chain can be followed without a network.
        case storeAll
    }

    /// Whether a response that could neither be reused nor validated is worth its room.
    package enum UnusablePolicy: UInt8, Hashable, Sendable {
        case refuse
        /// For caches that serve entries of any age.
        case store
    }

    package enum ProvokedRefusalPolicy: UInt8, Hashable, Sendable {
        case requireExplicitFreshness
        /// RFC 9110 §15.1 to the letter: a 501 may be kept by heuristics.
        case followStatusCode
    }

    /// How long to keep a response of a status that came without a lifetime.
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
        /// Stores and reuses despite `no-store` and `no-cache`. What protects one user from
        /// another in a shared cache, and `must-revalidate`, still holds.
        case ignore
    }

    package var mode: CacheMode
    /// Names of targeted fields to obey, the most specific first (RFC 9213).
    package var targetedFields: [String]
    /// Nil switches heuristics off.
    package var heuristic: Heuristic? = .tenth
    package var originDirectives: OriginDirectives = .respect
    package var methods: MethodSet = [.get, .head]
    package var cookies: CookiePolicy
    package var redirects: RedirectPolicy = .followFreshness
    package var unusable: UnusablePolicy
    package var provokedRefusals: ProvokedRefusalPolicy = .requireExplicitFreshness
    package var negativeLifetimes: [NegativeLifetime] = []
    /// Replaces whatever lifetime the response has.
    package var lifetimeOverrideSeconds: UInt32?
    package var lifetimeSecondsMin: UInt32 = 0
    package var lifetimeSecondsMax: UInt32 = DeltaSeconds.maximum
    /// More selecting fields than this and the response is not stored.
    package var varyNamesMax = Vary.namesMax

    package init(mode: CacheMode) {
        self.mode = mode
        switch mode {
        case .shared:
            targetedFields = ["CDN-Cache-Control"]
            cookies = .storeWhenExplicitlyFresh
            unusable = .refuse
        case .private:
            targetedFields = []
            cookies = .ignore
            unusable = .store
        }
    }

    package static let shared = StoringRules(mode: .shared)
    package static let `private` = StoringRules(mode: .private)
}
