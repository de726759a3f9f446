import HTTPCaching

/// Requests that the store cannot answer: they are sent to the origin, and stored responses that
/// they may have changed are removed. The response to a POST may be stored for later GETs.
extension RequestRunner {
    @inline(never)
    nonisolated(nonsending) func pass() async throws -> CacheResponse {
        guard policy.onMiss == .load else { throw Self.notCached }
        let response: CacheResponse
        if facts.onlyIfCached, request.method.kind.isSafe {
            response = builder.gatewayTimeout()
        } else {
            let context = passingContext()
            let boarded = boarding.boardAlone(context, nowNanoseconds: nowNanoseconds)
            let outcome = await boarding.outcome(of: boarded, context)
            if case .answered(let answer, _) = outcome { await invalidate(after: answer) }
            guard case .respond(let answered, _) = try finish(outcome, context) else {
                throw CacheError.cacheShutDown
            }
            response = answered
        }
        noteAnswer(response)
        return response
    }

    private func passingContext() -> FetchContext {
        let mayAnswerGets = request.method == .post && asked.isStorable && policy.writes
        return FetchContext(
            asked,
            policy: policy.with {
                $0.reads = false
                $0.writes = false
            },
            lookup: .nothing(key, forward),
            ticket: services.tiers.ledger.ticket(),
            purpose: mayAnswerGets ? .post : .answer
        )
    }

    /// The reason why the request was forwarded, in the words of RFC 9211 §2.2.
    private var forward: CacheStatus.Forward {
        guard asked.request.isAnsweredByKey else { return .method }
        if policy.reads { return .miss }
        return policy.writes ? .request : .bypass
    }

    /// RFC 9111 §4.4: a response that an unsafe method may have changed is not used again.
    nonisolated(nonsending) private func invalidate(after answer: FlightAnswer) async {
        guard policy.writes else { return }
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
        other.url = url
        other.options.key = nil
        return try? services.key(of: other).key
    }
}
