/// How a request must be answered after a look-up.
///
/// Each case names the next action and performs nothing.
public enum ReuseDecision: Hashable, Sendable {
    case serve(ageSeconds: Int)
    /// Serve a stale response, because the client or the cache's owner accepts one.
    case serveStale(ageSeconds: Int)
    /// Serve a stale response and validate it in the background (RFC 5861 §3).
    case serveStaleThenRevalidate(ageSeconds: Int)
    /// Ask the origin first, conditionally if the stored response has a validator.
    ///
    /// If the origin fails, `StaleOnError` decides whether the stored response may be served.
    case revalidate
    /// Ask the origin as if nothing were stored.
    case fetch
    /// The client forbids a request, and no stored response is usable (RFC 9111 §5.2.1.7).
    case gatewayTimeout
}

extension ReuseDecision {
    /// Decides whether the selected stored response may answer this request (RFC 9111 §4).
    ///
    /// - Complexity: O(1), on numbers alone.
    public static func decide(
        stored: StoredFacts,
        request: RequestFacts,
        nowSeconds: Int64,
        preferences: ReusePreferences
    ) -> ReuseDecision {
        let age = stored.ageSeconds(at: nowSeconds)
        switch preferences.freshness {
        case .acceptAnyAge(let limit):
            let isFresh = stored.isFresh(at: nowSeconds) && !stored.flags.contains(.noCache)
            if isFresh { return .serve(ageSeconds: age) }
            if limit == .ignoreMustRevalidate || !stored.forbidsStale {
                return .serveStale(ageSeconds: age)
            }
        case .alwaysValidate: break
        case .respect:
            if request.flags.contains(.noStore) { return askingOrigin(.fetch, request) }
            if let served = serve(stored, request, age: age, preferences) { return served }
        }
        return askingOrigin(.revalidate, request)
    }

    /// Decides for a request without a stored response.
    public static func decideMiss(request: RequestFacts) -> ReuseDecision {
        askingOrigin(.fetch, request)
    }

    private static func askingOrigin(
        _ decision: ReuseDecision,
        _ request: RequestFacts
    ) -> ReuseDecision {
        request.onlyIfCached ? .gatewayTimeout : decision
    }

    private static func serve(
        _ stored: StoredFacts,
        _ request: RequestFacts,
        age: Int,
        _ preferences: ReusePreferences
    ) -> ReuseDecision? {
        guard !stored.flags.contains(.noCache) || Mutant.servesNoCache.isOn else { return nil }
        let lifetime = Int(stored.freshnessLifetimeSeconds)
        let staleness = age - lifetime - (Mutant.staysFreshTooLong.isOn ? 1 : 0)
        let wish = ClientWish(request, stored: stored, isFresh: staleness < 0)
        guard !wish.demandsValidation else { return nil }
        if staleness < 0 {
            return wish.accepts(ageSeconds: age, freshForSeconds: -staleness)
                ? .serve(ageSeconds: age) : nil
        }
        guard !stored.forbidsStale else { return nil }
        if wish.accepts(stalenessSeconds: staleness, ageSeconds: age) {
            return .serveStale(ageSeconds: age)
        }
        let window =
            stored.flags.contains(.hasStaleWhileRevalidate)
            ? stored.staleWhileRevalidateSeconds : preferences.staleWhileRevalidateSeconds
        // The window starts when the response becomes stale, not when it was stored.
        guard !wish.isStrict, staleness < Int(window) else { return nil }
        return .serveStaleThenRevalidate(ageSeconds: age)
    }
}

extension StoredFacts {
    public var forbidsStale: Bool { !flags.isDisjoint(with: .staleForbidding) }
}

/// The request's Cache-Control directives (RFC 9111 §5.2.1) that this cache obeys.
private struct ClientWish {
    private let maxAge: UInt32?
    private let minFresh: UInt32?
    private let maxStale: UInt32?
    let demandsValidation: Bool

    init(_ request: RequestFacts, stored: StoredFacts, isFresh: Bool) {
        // RFC 8246 §2: a plain reload sends max-age=0; an immutable response that is fresh needs no
        // validation.
        let isReload =
            request.maxAgeSeconds == 0 && stored.flags.contains(.immutable)
            && (isFresh || Mutant.takesStaleForImmutable.isOn)
        maxAge = isReload ? nil : request.maxAgeSeconds
        minFresh = request.minFreshSeconds
        maxStale =
            request.maxStaleSeconds
            ?? (request.flags.contains(.maxStaleAny) ? DeltaSeconds.maximum : nil)
        demandsValidation = request.flags.contains(.noCache)
    }

    /// Whether the client requires more than freshness; it must not get a stale response then.
    var isStrict: Bool { maxAge != nil || minFresh != nil }

    func accepts(ageSeconds: Int, freshForSeconds: Int) -> Bool {
        if let minFresh, freshForSeconds < Int(minFresh) { return false }
        guard let maxAge else { return true }
        // max-age limits the age, max-stale the staleness: max-stale does not make a fresh response
        // acceptable that is older than max-age.
        return ageSeconds <= Int(maxAge)
    }

    func accepts(stalenessSeconds: Int, ageSeconds: Int) -> Bool {
        guard let maxStale, minFresh == nil, stalenessSeconds <= Int(maxStale) else { return false }
        guard let maxAge else { return true }
        return ageSeconds <= Int(maxAge)
    }
}
