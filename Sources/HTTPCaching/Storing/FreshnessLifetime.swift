/// How long a response stays fresh, and where that number comes from (RFC 9111 §4.2.1).
public struct FreshnessLifetime: Hashable, Sendable {
    public enum Source: UInt8, Hashable, Sendable {
        /// The cache's setting, which replaces the response's own lifetime.
        case override
        case sharedMaxAge
        case maxAge
        case expires
        /// The cache's setting for this status.
        case status
        case heuristic
        /// There is no lifetime: the response is stale from the start.
        case none
    }

    public var seconds: UInt32
    public var source: Source

    public init(seconds: UInt32, source: Source) {
        self.seconds = seconds
        self.source = source
    }

    /// Whether the origin or the cache's owner gave the lifetime.
    public var isExplicit: Bool {
        switch source {
        case .override, .sharedMaxAge, .maxAge, .expires, .status: true
        case .heuristic, .none: false
        }
    }
}

extension FreshnessLifetime {
    /// The lifetime under these rules.
    ///
    /// The time of receipt replaces a missing or invalid Date.
    public static func calculate(
        request: RequestFacts,
        response: ResponseFacts,
        rules: StoringRules,
        receivedAtSeconds: Int64
    ) -> FreshnessLifetime {
        // The settings for all responses would keep a passing error in the place of a good response.
        let isSettable = !StatusFacts(response.status).isPassingError
        if isSettable, let seconds = rules.lifetimeOverrideSeconds {
            return FreshnessLifetime(seconds: min(seconds, DeltaSeconds.maximum), source: .override)
        }
        var lifetime =
            unclosed(response)
            ?? explicit(response, mode: rules.mode, receivedAtSeconds: receivedAtSeconds)
            ?? ofStatus(response, rules: rules)
            ?? heuristic(request, response, rules: rules, receivedAtSeconds: receivedAtSeconds)
            ?? FreshnessLifetime(seconds: 0, source: .none)
        let atLeast = isSettable ? min(rules.lifetimeSecondsMin, rules.lifetimeSecondsMax) : 0
        lifetime.seconds = min(max(lifetime.seconds, atLeast), rules.lifetimeSecondsMax)
        return lifetime
    }

    /// The lifetime that the response itself states.
    ///
    /// s-maxage (in a shared cache) precedes max-age, and max-age precedes Expires.
    ///
    /// A targeted field disables Expires (RFC 9213 §2.2).
    public static func explicit(
        _ response: ResponseFacts,
        mode: CacheMode,
        receivedAtSeconds: Int64
    ) -> FreshnessLifetime? {
        let directives = response.directives
        let mode = Mutant.ignoresSharedMaxAge.isOn ? CacheMode.private : mode
        if mode == .shared, let seconds = directives.sharedMaxAgeSeconds {
            return FreshnessLifetime(seconds: seconds, source: .sharedMaxAge)
        }
        if let seconds = directives.maxAgeSeconds {
            return FreshnessLifetime(seconds: seconds, source: .maxAge)
        }
        guard response.flags.contains(.hasExpires), !response.flags.contains(.isTargeted) else {
            return nil
        }
        guard let expires = response.expiresSeconds else {
            return FreshnessLifetime(seconds: 0, source: .expires)
        }
        let date = response.dateSeconds ?? receivedAtSeconds
        return FreshnessLifetime(seconds: DeltaSeconds.clamp(expires - date), source: .expires)
    }

    /// The lifetime 0 if a quoted string never closes.
    ///
    /// The text after the quote could be part of the string, so no lifetime of the field counts and
    /// none is guessed.
    private static func unclosed(_ response: ResponseFacts) -> FreshnessLifetime? {
        guard response.directives.flags.contains(.unclosedQuote) else { return nil }
        return FreshnessLifetime(seconds: 0, source: .none)
    }

    private static func ofStatus(
        _ response: ResponseFacts,
        rules: StoringRules
    ) -> FreshnessLifetime? {
        for index in rules.statusLifetimes.indices {
            let lifetime = rules.statusLifetimes[index]
            guard lifetime.status == response.status else { continue }
            return FreshnessLifetime(seconds: lifetime.seconds, source: .status)
        }
        return nil
    }

    /// The heuristic lifetime (RFC 9111 §4.2.2).
    ///
    /// A shared cache guesses no lifetime for a response that may be personal: the request had
    /// cookies, or the response sets some.
    private static func heuristic(
        _ request: RequestFacts,
        _ response: ResponseFacts,
        rules: StoringRules,
        receivedAtSeconds: Int64
    ) -> FreshnessLifetime? {
        guard let heuristic = rules.heuristic, let modified = response.lastModifiedSeconds,
            mayBeHeuristic(request, response, rules: rules)
        else { return nil }
        let elapsed = max(0, (response.dateSeconds ?? receivedAtSeconds) - modified)
        let share = Int64(DeltaSeconds.clamp(elapsed)) * Int64(heuristic.permille) / 1_000
        let seconds = min(UInt32(share), heuristic.lifetimeSecondsMax)
        return FreshnessLifetime(seconds: seconds, source: .heuristic)
    }

    private static func mayBeHeuristic(
        _ request: RequestFacts,
        _ response: ResponseFacts,
        rules: StoringRules
    ) -> Bool {
        let flags = response.directives.flags
        let status = StatusFacts(response.status)
        guard status.isHeuristicallyCacheable || flags.contains(.public) else { return false }
        let isHTTP10NoCache =
            response.flags.contains(.hasPragmaNoCache)
            && !response.flags.contains(.hasCacheControl)
        guard !isHTTP10NoCache else { return false }
        if Mutant.guessesForCookies.isOn { return true }
        guard rules.mode == .shared, !flags.contains(.public), rules.cookies != .ignore else {
            return true
        }
        let setsCookie =
            response.flags.contains(.hasSetCookie) && rules.cookies != .strip
            && !response.directives.omitsCookies(in: rules.mode)
        return !setsCookie && !request.flags.contains(.hasCookie)
    }
}
