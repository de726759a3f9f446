import HTTPCaching

/// The step for a request that waits for its flight.
extension ReuseStep {
    /// The step for a request that selects a response which another machine has stored.
    init(shared stored: StoredResponse, for context: FetchContext, _ services: Services) {
        self.init(
            stored,
            for: context.facts,
            services.terms(context.policy),
            services.tiers,
            refreshAheadShare: nil,
            nowSeconds: services.clock.nowSeconds
        )
    }

    /// Whether a request may have a response with these facts now, as a fresh one.
    static func isServedFresh(
        _ facts: StoredFacts,
        to context: FetchContext,
        _ services: Services
    ) -> Bool {
        let terms = services.terms(context.policy)
        let decision = ReuseDecision.decide(
            stored: facts,
            request: context.facts,
            nowSeconds: services.clock.nowSeconds,
            preferences: terms.preferences
        )
        guard case .respond(.fresh, _, _) = ReuseStep(decision, terms, dueSeconds: nil) else {
            return false
        }
        return true
    }
}
