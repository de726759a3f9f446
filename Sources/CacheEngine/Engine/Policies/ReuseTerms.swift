import HTTPCaching

/// What a policy means for the reuse of stored answers: all that a look-up asks of it, as numbers.
struct ReuseTerms: Sendable {
    /// Whether stored answers may be used at all.
    let reads: Bool
    /// Whether whatever is stale is refreshed behind the answer it gives.
    let refreshesStale: Bool
    /// Whether a fresh answer is given as it is, with no work behind it.
    let servesFresh: Bool
    let preferences: ReusePreferences

    init(_ policy: CachePolicy, _ storing: StoringOptions) {
        reads = policy.reads
        refreshesStale = policy.freshness == .acceptAnyAgeThenRefresh
        preferences = storing.preferences(policy: policy)
        servesFresh =
            reads && preferences.freshness != .alwaysValidate && storing.refreshAheadShare == nil
    }
}
