import HTTPCaching

/// The choices that the RFCs leave to a cache: which responses are stored, and for how long.
public struct CachingRules: Hashable, Sendable {
    /// The heuristic lifetime, from Last-Modified (RFC 9111 §4.2.2); `nil` disables it.
    public var heuristic: Heuristic? = Heuristic()
    /// The cache-control fields for this kind of cache only (RFC 9213), the most specific first;
    /// `nil` for the usual ones of the cache's mode.
    public var targetedFields: [String]?
    /// The shortest lifetime of a response; 0 sets no limit.
    ///
    /// An error other than 404, 410 and 414 may have a shorter one. What a request with cookies
    /// brought is for other clients only if the origin itself says so.
    public var minimumLifetime = Duration.zero
    /// The longest lifetime of a response.
    public var maximumLifetime = Duration.seconds(Int(Int32.max))
    /// The lifetime of a response without one, by its status; 200 is a status like any other.
    ///
    /// It replaces the heuristic lifetime. What a request with cookies brought is for other clients
    /// only if the origin itself says so.
    public var statusLifetimes: [Int: Duration] = [:]
    /// The redirects that are stored; those without explicit freshness serve use offline.
    public var redirects = Redirects.followFreshness
    /// The effect of `Set-Cookie` in a response, in a shared cache.
    public var cookies = Cookies.refuse
    /// Whether a request with a `Cookie` field may share a fetch with other requests.
    public var cookieRequests = CookieRequests.shared
    /// The `stale-while-revalidate` time of responses that give none (RFC 5861).
    public var staleWhileRevalidate = Duration.zero
    /// The `stale-if-error` time of responses that give none, if the origin responds with an error
    /// (RFC 5861).
    public var staleIfError = Duration.zero
    /// The same time if the origin cannot be reached (RFC 9111 §4.2.4).
    public var staleOnDisconnect = Duration.seconds(86_400)
    /// The validators that a conditional request carries.
    public var validators = Validators.all
    /// The normal form of the request fields that select a variant, by name.
    ///
    /// Of the fields that it leaves out, Accept-Encoding, Accept-Language and Accept-Charset are
    /// weighted, and Accept, Forwarded and Prefer are lists. Any other is compared as a list if all
    /// of its members are tokens, and else, like Cookie and User-Agent, verbatim.
    public var selectingFields: [String: SelectingField] = [:]
    /// The most variants kept of one resource.
    ///
    /// A further variant is not stored until the kept ones have been there for a minute; then all
    /// of them are removed together. The most that can be counted is 65,535, and the fewest is 1; a
    /// number beyond either counts as that.
    public var maximumVariants = 64
    /// The response fields that name its tags, separated by commas, spaces or tabs.
    public var tagFields = ["Cache-Tag", "Surrogate-Key"]
    /// The most tags kept of one response.
    public var maximumTags = 256
    /// The storage class of responses whose policy names none.
    public var storageClass = StorageClass.permanent
    /// The share of a lifetime after which a hit also refreshes the response, above 0 and at most 1;
    /// `nil` disables this.
    public var refreshAheadShare: Double?
    /// The fetch for a range request that finds nothing stored.
    public var rangeMiss = RangeMiss.partOnly
    /// The fetch for a request with If-None-Match or If-Modified-Since that finds nothing stored.
    public var conditionMiss = ConditionMiss.forwarded
    /// The schemes other than http and https whose responses may be stored.
    public var additionalSchemes: Set<String> = []
    /// Whether a client's own Cache-Control is obeyed.
    public var requestDirectives = RequestDirectives.honour

    /// The heuristic that gives a lifetime to a response without one.
    public struct Heuristic: Hashable, Sendable {
        /// The share of the time since Last-Modified.
        public var share = 0.1
        /// The longest heuristic lifetime.
        public var maximumLifetime = Duration.seconds(86_400)
        /// Creates the usual heuristic: a tenth of that time, and at most a day.
        public init() {}
    }

    /// The redirects that are stored.
    public enum Redirects: Hashable, Sendable {
        /// 301 and 308 are stored, and others if they are explicitly fresh.
        case followFreshness
        /// All redirects are stored.
        case storeAll
    }

    /// The effect of `Set-Cookie`.
    public enum Cookies: Hashable, Sendable {
        /// The response is not stored, even with a lifetime: a cookie usually belongs to one user.
        case refuse
        /// The response is stored without its cookies.
        case strip
        /// The response is stored with its cookies, which every client gets, if the origin gave a
        /// lifetime or sent `public`.
        case store
    }

    /// Whether requests with cookies share fetches.
    public enum CookieRequests: Hashable, Sendable {
        /// They share fetches as other requests do.
        ///
        /// In a shared cache, a response that must be confirmed before each use is not for those that
        /// waited for it, unless the origin sends `public` or a lifetime above 0 without `no-cache`.
        case shared
        /// Each is sent to the origin by itself.
        case alone
    }

    /// The validators that are sent.
    public enum Validators: Hashable, Sendable {
        /// If-None-Match and If-Modified-Since are sent, as far as known.
        case all
        /// Only the strongest validator is sent.
        case strongestOnly
    }

    /// The comparison of a request field that selects a variant.
    public enum SelectingField: Hashable, Sendable {
        /// The value is compared as it is.
        case verbatim
        /// The value is compared as a list, without regard to whitespace; empty members count.
        case list
        /// The value is compared as weighted tokens, ordered by weight.
        case weighted
        /// The best of these values that the request accepts is compared; a value of more than 32
        /// members is compared as a list.
        case best(of: [String])
    }

    /// The fetch for a range request that finds nothing stored.
    public enum RangeMiss: Hashable, Sendable {
        /// The requested part is fetched.
        case partOnly
        /// The requested part is fetched, and then the whole in the background.
        case wholeBehind
    }

    /// The fetch for a request with If-None-Match or If-Modified-Since that finds nothing stored.
    public enum ConditionMiss: Hashable, Sendable {
        /// The request is sent as it came; it is not collapsed, and a 304 to it is not stored.
        case forwarded
        /// The request is sent without its conditions and is collapsed like any other. The response
        /// is stored, and the cache evaluates the conditions.
        ///
        /// A request that demands the origin's newest response, and one for a response that was
        /// found to be for one client only or too large to be stored, are still sent as they came.
        case whole
    }

    /// Whether clients may demand more freshness than the origin.
    public enum RequestDirectives: Hashable, Sendable {
        /// Their Cache-Control is obeyed (RFC 9111 §5.2.1).
        case honour
        /// Their Cache-Control is not read.
        case ignore
    }

    /// Creates HTTP's own rules.
    public init() {}
}

extension CachingRules {
    /// The rules of storing under `policy`.
    func rules(mode: HTTPCache.Configuration.Mode, policy: CachePolicy) -> StoringRules {
        var rules = StoringRules(mode: mode == .shared ? .shared : .private)
        if let targetedFields { rules.targetedFields = targetedFields }
        rules.heuristic = heuristic.map {
            .init(
                permille: UInt32($0.share * 1_000),
                lifetimeSecondsMax: Self.seconds($0.maximumLifetime)
            )
        }
        rules.lifetimeSecondsMin = Self.seconds(minimumLifetime)
        rules.lifetimeSecondsMax = min(Self.seconds(maximumLifetime), UInt32(Int32.max))
        rules.statusLifetimes = statusLifetimes.sorted { $0.key < $1.key }.map {
            .init(status: $0.key, seconds: Self.seconds($0.value))
        }
        rules.redirects = redirects == .storeAll ? .storeAll : .followFreshness
        if mode == .shared { rules.cookies = cookiePolicy }
        if !policy.respectsOriginDirectives {
            rules.originDirectives = .ignore
            rules.unusable = .store
        }
        rules.lifetimeOverrideSeconds = policy.lifetimeOverride.map(Self.seconds)
        return rules
    }

    var variantRules: VariantRules {
        var rules = VariantRules()
        for (name, field) in selectingFields {
            rules.overrides[name.lowercased()] =
                switch field {
                case .verbatim: .verbatim
                case .list: .list
                case .weighted: .weighted
                case .best(let values): .best(of: values)
                }
        }
        return rules
    }

    /// The facts of the request that the rules use.
    ///
    /// Directives that are ignored are left out here, so that no rule can obey them.
    func facts(of request: CacheRequest) -> RequestFacts {
        let facts = RequestFacts(method: request.method.kind, fields: request.fields.section)
        return requestDirectives == .honour ? facts : facts.withoutDirectives
    }

    /// Whether a request demands a response that the origin sends or confirms after it.
    func demandsOrigin(_ facts: RequestFacts, _ policy: CachePolicy) -> Bool {
        policy.freshness == .alwaysValidate || facts.flags.contains(.noCache)
            || facts.maxAgeSeconds == 0
    }

    func preferences(policy: CachePolicy) -> ReusePreferences {
        var preferences = ReusePreferences()
        preferences.staleWhileRevalidateSeconds = Self.seconds(staleWhileRevalidate)
        preferences.staleOnErrorSeconds = Self.seconds(staleIfError)
        preferences.staleOnDisconnectSeconds = Self.seconds(staleOnDisconnect)
        switch policy.freshness {
        case .respect: preferences.freshness = .respect
        case .acceptAnyAge, .acceptAnyAgeThenRefresh:
            preferences.freshness = .acceptAnyAge(.ignoreMustRevalidate)
        case .acceptAnyAgeUnlessForbidden:
            preferences.freshness = .acceptAnyAge(.honourMustRevalidate)
        case .alwaysValidate: preferences.freshness = .alwaysValidate
        }
        return preferences
    }

    private var cookiePolicy: StoringRules.CookiePolicy {
        switch cookies {
        case .refuse: .refuse
        case .strip: .strip
        case .store: .store
        }
    }

    private static func seconds(_ value: Duration) -> UInt32 {
        UInt32(clamping: min(max(0, value.wholeSeconds), Int(Int32.max)))
    }
}
