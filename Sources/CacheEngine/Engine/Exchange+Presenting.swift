import HTTPCaching

/// From what the origin said to what this request is told.
extension Exchange {
    /// This request's answer; nil when the flight's answer cannot serve it.
    func present(_ answer: FlightAnswer, _ load: Load, isLeader: Bool) -> CacheResponse? {
        switch answer.content {
        case .confirmed(let stored):
            let serving = HTTPCache.Serving(
                source: .revalidated,
                tier: load.selection.tier,
                ageSeconds: stored.facts.ageSeconds(at: cache.clock.nowSeconds),
                originStatus: answer.status,
                originFields: HeaderFields(answer.fields)
            )
            return cache.serve(stored, to: request, facts, as: serving)
        case .own(let body):
            guard isLeader else { return nil }
            if let response = standIn(for: answer.status, load) { return response }
            return response(answer, answer.fields, body, load, isLeader: true)
        case .arriving(let chain):
            return present(arriving: chain, answer, load, isLeader: isLeader)
        }
    }

    private func present(
        arriving chain: BodyChain,
        _ answer: FlightAnswer,
        _ load: Load,
        isLeader: Bool
    ) -> CacheResponse? {
        let fields = isLeader ? answer.fields : answer.sharedFields
        if request.method == .head {
            return response(answer, fields, .empty, load, isLeader: isLeader)
        }
        if let special = presentSpecially(chain, answer, load, isLeader: isLeader) {
            return special
        }
        guard let body = chain.stream(for: isLeader ? .asker : .follower) else { return nil }
        return response(answer, fields, body, load, isLeader: isLeader)
    }

    /// A 304 or a part of an answer that is still arriving.
    private func presentSpecially(
        _ chain: BodyChain,
        _ answer: FlightAnswer,
        _ load: Load,
        isLeader: Bool
    ) -> CacheResponse? {
        guard answer.status == 200, let stored = answer.facts,
            facts.isConditional || facts.hasRange
        else { return nil }
        let evaluation = Conditional.evaluateClientConditionals(
            request: request.fields.section,
            requestFacts: facts,
            stored: answer.sharedFields,
            storedFacts: stored,
            nowSeconds: cache.clock.nowSeconds
        )
        if evaluation == .notModified {
            let fields = Conditional.notModifiedFields(stored: answer.sharedFields)
            var response = response(answer, fields, .empty, load, isLeader: isLeader)
            response.status = 304
            return response
        }
        guard evaluation == .rangeAllowed, let size = chain.expectedCount,
            let ranges = RangeSet(request.fields.section),
            case .single(let range) = ranges.resolve(bodySize: size),
            let body = chain.stream(range)
        else { return nil }
        var response = response(answer, answer.sharedFields, body, load, isLeader: isLeader)
        response.status = 206
        response.fields["Content-Range"] = ContentRange(range: range, bodySize: size).text
        response.fields["Content-Length"] = String(range.count)
        return response
    }

    private func response(
        _ answer: FlightAnswer,
        _ fields: FieldSection,
        _ body: BodyStream,
        _ load: Load,
        isLeader: Bool
    ) -> CacheResponse {
        var info = CacheInfo(source: isLeader ? .origin : .collapsed)
        info.originStatus = answer.status
        info.refusal = answer.refusal
        info.isStored = answer.facts != nil
        if let stored = answer.facts {
            info.remainingSeconds = -stored.stalenessSeconds(at: cache.clock.nowSeconds)
        }
        var fields = fields
        if cache.configuration.cacheStatus == .added {
            fields.append("Cache-Status", cacheStatus(answer, load, info, isLeader: isLeader))
        }
        return CacheResponse(
            status: answer.status,
            fields: HeaderFields(fields),
            body: body,
            info: info
        )
    }

    private func cacheStatus(
        _ answer: FlightAnswer,
        _ load: Load,
        _ info: CacheInfo,
        isLeader: Bool
    ) -> String {
        var status = CacheStatus(
            identifier: cache.configuration.name,
            outcome: .forwarded(forward(load))
        )
        status.forwardStatus = answer.status
        status.isStored = info.isStored
        status.isCollapsed = !isLeader
        status.ttlSeconds = info.isStored ? info.remainingSeconds : nil
        status.detail = answer.refusal?.description
        return status.text
    }

    /// Why the request went forward, in the words of RFC 9211 §2.2.
    private func forward(_ load: Load) -> CacheStatus.Forward {
        if load.selection.miss == .method { return .method }
        if !policy.reads { return policy.writes ? .request : .bypass }
        guard let stored = load.selection.stored else { return load.selection.miss }
        if stored.facts.flags.contains(.isPartial) { return .partial }
        return stored.facts.isFresh(at: cache.clock.nowSeconds) ? .request : .stale
    }

    // MARK: Standing in

    /// The stored answer that stands in for a failed load, or the failure.
    func standIn(for error: any Error, _ load: Load) throws -> CacheResponse {
        guard !(error is CancellationError), cache.supervisor.isOpen,
            let stored = load.stored, cache.mayStandIn(stored, for: .unreachable, load),
            let response = fallback(stored, load, error: error, status: nil)
        else { throw error }
        return response
    }

    private func standIn(for status: Int, _ load: Load) -> CacheResponse? {
        guard let stored = load.stored, cache.mayStandIn(stored, for: .status(status), load) else {
            return nil
        }
        return fallback(stored, load, error: nil, status: status)
    }

    private func fallback(
        _ stored: StoredResponse,
        _ load: Load,
        error: (any Error)?,
        status: Int?
    ) -> CacheResponse? {
        let serving = HTTPCache.Serving(
            source: .fallback,
            tier: load.selection.tier,
            ageSeconds: stored.facts.ageSeconds(at: cache.clock.nowSeconds),
            originStatus: status,
            error: error
        )
        return cache.serve(stored, to: request, facts, as: serving)
    }
}

extension HTTPCache {
    /// Whether `stored` may be served now that loading has failed in this way.
    func mayStandIn(
        _ stored: StoredResponse,
        for failure: StaleOnError.Failure,
        _ load: Load
    ) -> Bool {
        switch load.policy.fallback {
        case .never: return false
        case .always(let statuses, let staleMax):
            if case .status(let code) = failure, !statuses.contains(code) { break }
            guard let staleMax else { return true }
            return stored.facts.stalenessSeconds(at: clock.nowSeconds) <= staleMax
        case .whereAllowed: break
        }
        return StaleOnError.allows(
            failure,
            stored: stored.facts,
            request: load.facts,
            nowSeconds: clock.nowSeconds,
            preferences: preferences(load.policy)
        )
    }
}
