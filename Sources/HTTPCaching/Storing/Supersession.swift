extension StoreDecision {
    /// The effect of a response that is not stored on the stored response for its request.
    public enum Supersession: Hashable, Sendable {
        /// The stored response must not be used again.
        case ends
        /// The stored response must not be used again if its validators differ from the new ones.
        case endsAnotherVersion
        case nothing
    }

    /// Decides by the response's own fields; `no-store` and the cookie of the request are ignored.
    ///
    /// Errors have no effect, except 404 and 410: the resource is gone.
    public static func supersession(
        request: RequestFacts,
        response: ResponseFacts,
        rules: StoringRules,
        receivedAtSeconds: Int64
    ) -> Supersession {
        guard StatusFacts(response.status).tellsOfTheResource else { return .nothing }
        var request = request
        request.flags.subtract([.noStore, .hasCookie])
        let decision = decide(
            request: request,
            response: response,
            rules: rules,
            receivedAtSeconds: receivedAtSeconds
        )
        let isWhole = request.method != .head && response.status != 206 && response.status != 304
        switch decision {
        case .refuse(.responseNoStore), .refuse(.responsePrivate): return .ends
        // One client's cookie must not invalidate the shared response, unless the version differs.
        case .refuse(.setCookie) where response.status == 200: return .endsAnotherVersion
        case .refuse(let refusal) where isWhole && refusal != .requestAuthorized: return .ends
        case .refuse, .store: return .endsAnotherVersion
        }
    }
}
