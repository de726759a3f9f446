import HTTPCaching

extension FetchContext {
    /// Whether `stored` may be served after this failure of the fetch: never after its removal.
    func mayStandIn(
        _ stored: StoredResponse,
        for failure: StaleOnError.Failure,
        _ services: Services
    ) -> Bool {
        if services.tiers.mayHaveRemoved(stored.stored, since: ticket),
            !Mutant.standsInDespiteRemovals.isOn
        {
            return false
        }
        let now = services.clock.nowSeconds
        let current =
            Mutant.standsInDespiteMarks.isOn
            ? stored.facts : services.tiers.currentFacts(of: stored)
        switch policy.fallback {
        case .never: return false
        case .always(let statuses, let staleMax):
            if case .status(let code) = failure, !statuses.contains(code) { break }
            guard let staleMax else { return true }
            return current.stalenessSeconds(at: now) <= staleMax.wholeSeconds
        case .whereAllowed: break
        }
        return StaleOnError.allows(
            failure,
            stored: current,
            request: facts,
            nowSeconds: now,
            preferences: services.terms(policy).preferences
        )
    }
}
