import HTTPCaching

/// How answers are judged and how long they last, beyond what the RFCs leave no choice in.
public struct StoringOptions: Hashable, Sendable {
    /// Whether a lifetime is guessed from Last-Modified (RFC 9111 §4.2.2), and how.
    public var heuristic: Heuristic? = Heuristic()
    /// The fields that speak to this kind of cache alone (RFC 9213), the most specific first;
    /// nil for the usual ones of the cache's mode.
    public var targetedFields: [String]?
    /// No answer stays fresh for less; 0 for no limit.
    public var lifetimeSecondsMin = 0
    /// No answer stays fresh for longer.
    public var lifetimeSecondsMax = Int(Int32.max)
    /// How long an answer of a status stays fresh when the origin does not say.
    public var negativeLifetimeSeconds: [Int: Int] = [:]
    /// Whether redirects without explicit freshness are kept too, for use offline.
    public var redirects = Redirects.followFreshness
    /// What `Set-Cookie` in an answer means in a shared cache.
    public var cookies = Cookies.storeWhenExplicitlyFresh
    /// Whether requests with a `Cookie` field may share another's answer while it is fetched.
    public var cookieRequests = CookieRequests.shared
    /// Seconds of `stale-while-revalidate` for answers that bring none (RFC 5861).
    public var staleWhileRevalidateSeconds = 0
    /// Seconds of `stale-if-error` for answers that bring none, when the origin answers with an
    /// error (RFC 5861).
    public var staleIfErrorSeconds = 0
    /// The same, when the origin cannot be reached (RFC 9111 §4.2.4).
    public var staleOnDisconnectSeconds = 86_400
    /// Which validators a conditional request carries.
    public var validators = Validators.all
    /// How a request's selecting fields are brought into one form; by lower-case name.
    public var selectingFields: [String: SelectingField] = [:]
    /// Variants kept of one resource.
    public var variantsMax = 64
    /// The fields of an answer that name its tags.
    public var tagFields = ["Cache-Tag", "Surrogate-Key"]
    /// Tags kept of one answer.
    public var tagsMax = 256
    /// The storage class of answers whose policy names none.
    public var storageClass = StorageClass.permanent
    /// How much of a lifetime may pass before a hit also refreshes the answer behind it; nil never.
    public var refreshAheadShare: Double?
    /// What to do when a request for a part finds nothing stored.
    public var rangeMiss = RangeMiss.partOnly
    /// Other schemes than http and https whose answers may be stored.
    public var additionalSchemes: Set<String> = []
    /// Whether a client's own Cache-Control is listened to.
    public var requestDirectives = RequestDirectives.honour

    /// Guessing a lifetime.
    public struct Heuristic: Hashable, Sendable {
        /// The share of the time since Last-Modified.
        public var share = 0.1
        /// The longest lifetime guessed.
        public var secondsMax = 86_400
        /// A tenth, and a day at most.
        public init() {}
    }

    /// Which redirects are kept.
    public enum Redirects: Hashable, Sendable {
        /// 301 and 308, and others that are explicitly fresh.
        case followFreshness
        /// All.
        case storeAll
    }

    /// What `Set-Cookie` means.
    public enum Cookies: Hashable, Sendable {
        /// Stored with its cookies when the origin gave a lifetime.
        case storeWhenExplicitlyFresh
        /// Stored only when the origin said `public` or `s-maxage`.
        case storeWhenPublic
        /// Stored without the cookies.
        case storeWithoutCookies
        /// Not stored.
        case refuse
        /// Stored like any other.
        case ignore
    }

    /// Whether requests with cookies wait for one another.
    public enum CookieRequests: Hashable, Sendable {
        /// They do, as any others.
        case shared
        /// Each asks for itself.
        case alone
    }

    /// Which validators are sent.
    public enum Validators: Hashable, Sendable {
        /// If-None-Match and If-Modified-Since, as far as known.
        case all
        /// The strongest only.
        case strongestOnly
    }

    /// How a selecting field is compared.
    public enum SelectingField: Hashable, Sendable {
        /// As it is.
        case verbatim
        /// As a list: without regard to whitespace.
        case list
        /// As weighted tokens, by weight.
        case weighted
        /// By the best of these that the request accepts.
        case best(of: [String])
    }

    /// What a range miss fetches.
    public enum RangeMiss: Hashable, Sendable {
        /// The part that was asked for.
        case partOnly
        /// That part, and the whole behind it.
        case wholeBehind
    }

    /// Whether clients may ask for more freshness than the origin.
    public enum RequestDirectives: Hashable, Sendable {
        /// They may (RFC 9111 §5.2.1).
        case honour
        /// Their Cache-Control is not read.
        case ignore
    }

    /// HTTP's own rules.
    public init() {}
}

extension StoringOptions {
    /// The same as the rules want it.
    func rules(mode: Configuration.Mode, policy: CachePolicy) -> StoringRules {
        var rules = StoringRules(mode: mode == .shared ? .shared : .private)
        if let targetedFields { rules.targetedFields = targetedFields }
        rules.heuristic = heuristic.map {
            .init(
                permille: UInt32($0.share * 1_000),
                lifetimeSecondsMax: Self.seconds($0.secondsMax)
            )
        }
        rules.lifetimeSecondsMin = Self.seconds(lifetimeSecondsMin)
        rules.lifetimeSecondsMax = min(Self.seconds(lifetimeSecondsMax), UInt32(Int32.max))
        rules.negativeLifetimes = negativeLifetimeSeconds.sorted { $0.key < $1.key }.map {
            .init(status: $0.key, seconds: Self.seconds($0.value))
        }
        rules.redirects = redirects == .storeAll ? .storeAll : .followFreshness
        if mode == .shared { rules.cookies = cookiePolicy }
        if !policy.respectsOriginDirectives {
            rules.originDirectives = .ignore
            rules.unusable = .store
        }
        rules.lifetimeOverrideSeconds = policy.lifetimeOverrideSeconds.map(Self.seconds)
        return rules
    }

    var variantRules: VariantRules {
        var rules = VariantRules()
        for (name, field) in selectingFields {
            switch field {
            case .verbatim: rules.overrides[name.lowercased()] = .verbatim
            case .list: rules.overrides[name.lowercased()] = .list
            case .weighted: rules.overrides[name.lowercased()] = .weighted
            case .best(let values): rules.overrides[name.lowercased()] = .best(of: values)
            }
        }
        return rules
    }

    func preferences(policy: CachePolicy) -> ReusePreferences {
        var preferences = ReusePreferences()
        preferences.staleWhileRevalidateSeconds = Self.seconds(staleWhileRevalidateSeconds)
        preferences.staleOnErrorSeconds = Self.seconds(staleIfErrorSeconds)
        preferences.staleOnDisconnectSeconds = Self.seconds(staleOnDisconnectSeconds)
        preferences.requestDirectives = requestDirectives == .honour ? .honour : .ignore
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
        case .storeWhenExplicitlyFresh: .storeWhenExplicitlyFresh
        case .storeWhenPublic: .storeWhenPublic
        case .storeWithoutCookies: .storeWithoutCookies
        case .refuse: .refuse
        case .ignore: .ignore
        }
    }

    private static func seconds(_ value: Int) -> UInt32 {
        UInt32(clamping: min(max(0, value), Int(Int32.max)))
    }
}
