import HTTPCaching

extension FetchContext {
    /// Whether `stored` may be served after this failure of the fetch.
    func mayStandIn(
        _ stored: StoredResponse,
        for failure: StaleOnError.Failure,
        _ services: Services
    ) -> Bool {
        let now = services.clock.nowSeconds
        switch policy.fallback {
        case .never: return false
        case .always(let statuses, let staleMax):
            if case .status(let code) = failure, !statuses.contains(code) { break }
            guard let staleMax else { return true }
            return stored.facts.stalenessSeconds(at: now) <= staleMax.wholeSeconds
        case .whereAllowed: break
        }
        guard !services.tiers.isDoubted(stored.entry) else { return false }
        return StaleOnError.allows(
            failure,
            stored: stored.facts,
            request: facts,
            nowSeconds: now,
            preferences: services.terms(policy).preferences
        )
    }
}
