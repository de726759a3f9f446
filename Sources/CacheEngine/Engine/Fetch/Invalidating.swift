import HTTPCaching

/// The removal of stored responses that an answered request may have changed (RFC 9111 §4.4): a
/// response that an unsafe method may have changed is not used again.
struct Invalidating {
    let services: Services
    let asked: RequestContext

    private var request: CacheRequest { asked.request }
    private var key: RequestKey { asked.key }

    nonisolated(nonsending) func removeTargets(of answer: FlightAnswer) async {
        guard asked.policy.writes else { return }
        let targets = Invalidation.targets(
            method: request.method.kind,
            status: answer.status,
            requestURL: request.url.withoutFragment,
            responseFields: answer.fields
        )
        var keys = targets.compactMap { keyOfGet($0) }
        // Its own key differs from that of the target if the caller has given it, or if the target
        // is written in another form than in keys.
        if !targets.isEmpty, !keys.contains(key) { keys.append(key) }
        for key in keys {
            // The response to the POST is stored under this key, and the old entry is removed
            // already.
            if answer.facts != nil, key == self.key { continue }
            guard await services.tiers.remove(key) else { continue }
            services.recorder.counters.add(.invalidations)
        }
    }

    /// The key under which the response to a GET of that URL is stored.
    private func keyOfGet(_ url: String) -> RequestKey? {
        var other = request
        other.method = .get
        other.body = nil
        other.url = services.configuration.requestURL?(url) ?? url
        other.options.key = nil
        return try? services.key(of: other).key
    }
}
