import HTTPCaching

/// The step that follows a reuse decision: the only switch over `ReuseDecision`, shared by the fast
/// hit and by a request that may wait.
enum ReuseStep {
    /// Serve the stored response, and refresh it in the background if `isRefreshed`.
    case respond(CacheInfo.Source, ageSeconds: Int, isRefreshed: Bool)
    /// Ask the origin whether the stored response is current.
    case revalidate
    /// Ask the origin as if nothing were stored.
    case fetch
    /// Respond with 504: the client forbids a request to the origin (RFC 9111 §5.2.1.7).
    case gatewayTimeout

    /// The step for a request that selects `stored`.
    ///
    /// `share` is the share of the lifetime after which a hit also refreshes.
    init(
        _ stored: StoredResponse,
        for facts: RequestFacts,
        _ terms: ReuseTerms,
        _ tiers: TieredStore,
        refreshAheadShare share: Double?,
        nowSeconds: Int64
    ) {
        let decision = ReuseDecision.decide(
            stored: tiers.currentFacts(of: stored),
            request: facts,
            nowSeconds: nowSeconds,
            preferences: terms.preferences
        )
        let dueSeconds = share.map { $0 * Double(stored.facts.freshnessLifetimeSeconds) }
        self.init(decision, terms, dueSeconds: dueSeconds)
    }

    /// The step for a request that selects nothing.
    init(missing facts: RequestFacts, _ terms: ReuseTerms) {
        let decision = ReuseDecision.decideMiss(request: facts)
        self.init(decision, terms, dueSeconds: nil)
    }

    /// `dueSeconds` is the age at which a hit also refreshes.
    init(_ decision: ReuseDecision, _ terms: ReuseTerms, dueSeconds: Double?) {
        switch decision {
        case .serve(let age):
            let isDue = dueSeconds.map { Double(age) >= $0 } ?? false
            self = .respond(.fresh, ageSeconds: age, isRefreshed: isDue)
        case .serveStale(let age):
            self = .respond(.stale, ageSeconds: age, isRefreshed: terms.refreshesStale)
        case .serveStaleThenRevalidate(let age):
            self = .respond(.stale, ageSeconds: age, isRefreshed: true)
        case .revalidate: self = .revalidate
        case .fetch: self = .fetch
        case .gatewayTimeout: self = .gatewayTimeout
        }
    }
}

/// A policy as the reuse of stored responses sees it: everything that a look-up needs, as numbers.
struct ReuseTerms: Sendable {
    /// Whether stored responses may be used at all.
    let reads: Bool
    /// Whether a stale response is refreshed in the background when it is used.
    let refreshesStale: Bool
    /// Whether a fresh response is used as it is, without further work.
    let servesFresh: Bool
    let preferences: ReusePreferences

    init(_ policy: CachePolicy, _ storing: CachingRules) {
        reads = policy.reads
        refreshesStale = policy.freshness == .acceptAnyAgeThenRefresh
        preferences = storing.preferences(policy: policy)
        servesFresh =
            reads && preferences.freshness != .alwaysValidate && storing.refreshAheadShare == nil
    }
}
