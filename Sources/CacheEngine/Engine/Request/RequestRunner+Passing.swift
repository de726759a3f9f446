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
            if case .answered(let answer, _) = outcome {
                await Invalidating(services: services, asked: asked).removeTargets(of: answer)
            }
            guard case .respond(let answered, _) = try finishAlone(outcome, context) else {
                throw CacheError.nothingTold
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
}
