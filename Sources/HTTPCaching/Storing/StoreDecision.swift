/// Whether a response may be stored, and with which lifetime (RFC 9111 §3).
public enum StoreDecision: Hashable, Sendable {
    case store(FreshnessLifetime)
    case refuse(StoreRefusal)
}

extension StoreDecision {
    /// Checks the conditions of RFC 9111 §3 in order; the first that fails is the reason.
    ///
    /// - Complexity: O(1), on facts already read.
    public static func decide(
        request: RequestFacts,
        response: ResponseFacts,
        rules: StoringRules,
        receivedAtSeconds: Int64
    ) -> StoreDecision {
        if let refusal = refusalByMessage(request, response, rules)
            ?? refusalByDirectives(request, response, rules)
            ?? refusalByPartialContent(request, response)
        {
            return .refuse(refusal)
        }
        let lifetime = FreshnessLifetime.calculate(
            request: request,
            response: response,
            rules: rules,
            receivedAtSeconds: receivedAtSeconds
        )
        if let refusal = refusalByCookies(response, lifetime, rules, receivedAtSeconds)
            ?? refusalByFreshness(request, response, lifetime, rules, receivedAtSeconds)
        {
            return .refuse(refusal)
        }
        return .store(lifetime)
    }

    /// Refuses by method, by status, and ambiguous messages.
    private static func refusalByMessage(
        _ request: RequestFacts,
        _ response: ResponseFacts,
        _ rules: StoringRules
    ) -> StoreRefusal? {
        let status = StatusFacts(response.status)
        if !rules.stores(request.method) { return .methodNotStored }
        if status.isInterim { return .interimResponse }
        if !status.isFinal || status.isNeverStored { return .statusNeverStored }
        if response.flags.contains(.hasInvalidContentLength) { return .ambiguousLength }
        if response.flags.contains(.variesOnEverything) { return .varyOnEverything }
        if response.varyMemberCount > Vary.namesMax { return .varyTooLong }
        return nil
    }

    /// must-understand, no-store, private, and Authorization in a shared cache (RFC 9111 §3.5).
    private static func refusalByDirectives(
        _ request: RequestFacts,
        _ response: ResponseFacts,
        _ rules: StoringRules
    ) -> StoreRefusal? {
        let flags = response.directives.flags
        let needsUnderstanding =
            flags.contains(.mustUnderstand) || flags.contains(.doubtfulMustUnderstand)
        if needsUnderstanding, !StatusFacts(response.status).isUnderstood {
            return .statusNotUnderstood
        }
        if rules.originDirectives == .respect {
            if request.flags.contains(.noStore) { return .requestNoStore }
            if Mutant.storesNoStore.isOn { return nil }
            // RFC 9111 §5.2.2.3: with must-understand, a cache that knows the status ignores
            // no-store.
            if flags.contains(.noStore), !flags.contains(.mustUnderstand) {
                return .responseNoStore
            }
        }
        guard rules.mode == .shared else { return nil }
        if flags.contains(.private), !Mutant.sharesPrivateResponses.isOn { return .responsePrivate }
        if Mutant.sharesAuthorizedResponses.isOn { return nil }
        if request.hasAuthorization, !response.allowsSharingAuthorized { return .requestAuthorized }
        return nil
    }

    private static func refusalByPartialContent(
        _ request: RequestFacts,
        _ response: ResponseFacts
    ) -> StoreRefusal? {
        guard response.status == 206 else { return nil }
        if !request.hasRange { return .partialUnrequested }
        return response.contentRange?.range == nil ? .partialWithoutContentRange : nil
    }

    private static func refusalByCookies(
        _ response: ResponseFacts,
        _ lifetime: FreshnessLifetime,
        _ rules: StoringRules,
        _ receivedAtSeconds: Int64
    ) -> StoreRefusal? {
        guard response.flags.contains(.hasSetCookie), rules.mode == .shared,
            !response.directives.omitsCookies(in: rules.mode)
        else { return nil }
        switch rules.cookies {
        case .ignore, .strip: return nil
        case .refuse: return .setCookie
        case .store:
            if response.directives.flags.contains(.public) { return nil }
            let stated = statedSeconds(response, lifetime, rules, receivedAtSeconds)
            return stated ?? 0 > 0 ? nil : .setCookie
        }
    }

    /// The last condition of §3 (a reason to store), and whether the response would be usable.
    private static func refusalByFreshness(
        _ request: RequestFacts,
        _ response: ResponseFacts,
        _ lifetime: FreshnessLifetime,
        _ rules: StoringRules,
        _ receivedAtSeconds: Int64
    ) -> StoreRefusal? {
        let status = StatusFacts(response.status)
        let flags = response.directives.flags
        let isMarked =
            flags.contains(.public) || (rules.mode == .private && flags.contains(.private))
        let isKeptRedirect = rules.redirects == .storeAll && status.isRedirect
        // It would replace the stored response, and could not be used itself.
        if status.isPassingError, lifetime.seconds == 0, !Mutant.keepsPassingErrors.isOn {
            return status.isProvokedRefusal ? .provokedRefusal : .notFreshNorCacheable
        }
        // RFC 9110 §9.3.3: a response to POST needs explicit freshness, not that of a setting.
        let isPostWithoutOwn = request.method == .post && lifetime.source == .status
        if !lifetime.isExplicit || isPostWithoutOwn {
            if status.isProvokedRefusal, !isMarked { return .provokedRefusal }
            let isGround =
                request.method != .post && (status.isHeuristicallyCacheable || isMarked)
            guard isGround || isKeptRedirect else { return .notFreshNorCacheable }
        }
        if request.flags.contains(.hasCookie), rules.mode == .shared, !isMarked,
            !isForOthers(response, lifetime, rules, receivedAtSeconds)
        {
            return .notFreshNorCacheable
        }
        guard rules.unusable == .refuse, !isKeptRedirect else { return nil }
        let isUsable =
            lifetime.seconds > 0 || response.hasAnyValidator
            || (response.directives.staleWhileRevalidateSeconds ?? 0) > 0
            || (response.directives.staleIfErrorSeconds ?? 0) > 0
        return isUsable ? nil : .neitherFreshNorValidatable
    }

    /// Whether a lifetime states that other requests may be answered with the response to a request
    /// with cookies.
    ///
    /// A lifetime of 0 and `no-cache` let no request be answered without the origin.
    private static func isForOthers(
        _ response: ResponseFacts,
        _ lifetime: FreshnessLifetime,
        _ rules: StoringRules,
        _ receivedAtSeconds: Int64
    ) -> Bool {
        let directives = response.directives
        guard let stated = statedSeconds(response, lifetime, rules, receivedAtSeconds),
            rules.originDirectives == .ignore || !directives.flags.contains(.noCache)
        else { return false }
        if stated > 0 || Mutant.sharesSpentLifetimes.isOn { return true }
        return (directives.staleWhileRevalidateSeconds ?? 0) > 0
            && !directives.forbidsStale(in: rules.mode)
    }

    /// The part of a lifetime that the origin states, or the owner's own lifetime for the request.
    ///
    /// `nil` if there is neither. The cache's minimum and its lifetimes by status do not count: the
    /// origin has not said by them that others may get the response (decision 0013).
    private static func statedSeconds(
        _ response: ResponseFacts,
        _ lifetime: FreshnessLifetime,
        _ rules: StoringRules,
        _ receivedAtSeconds: Int64
    ) -> UInt32? {
        if Mutant.takesSettingsForStatements.isOn {
            return lifetime.isExplicit ? lifetime.seconds : nil
        }
        switch lifetime.source {
        case .override: return lifetime.seconds
        case .sharedMaxAge, .maxAge, .expires:
            let stated = FreshnessLifetime.explicit(
                response,
                mode: rules.mode,
                receivedAtSeconds: receivedAtSeconds
            )
            return stated.map { min($0.seconds, lifetime.seconds) }
        case .status, .heuristic, .none: return nil
        }
    }
}

extension ResponseFacts {
    /// Whether a shared cache may store a response to a request with Authorization (RFC 9111 §3.5).
    public var allowsSharingAuthorized: Bool {
        let flags = directives.flags
        return flags.contains(.public) || flags.contains(.mustRevalidate)
            || directives.sharedMaxAgeSeconds != nil && !flags.contains(.doubtfulSharedMaxAge)
    }
}
