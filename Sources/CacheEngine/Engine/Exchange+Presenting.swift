import HTTPCaching

/// From what the origin said to what this request is told.
extension Exchange {
    /// This request's answer; nil when the flight's answer cannot serve it.
    func present(_ answer: FlightAnswer, _ load: Load, isLeader: Bool) -> CacheResponse? {
        switch answer.content {
        case .confirmed(let stored):
            var info = CacheInfo(source: .revalidated, tier: load.selection.tier)
            info.ageSeconds = stored.facts.ageSeconds(at: cache.clock.nowSeconds)
            info.originStatus = answer.status
            info.originFields = HeaderFields(answer.fields)
            return cache.serve(stored, to: request, facts, as: info)
        case .own(let body):
            guard isLeader else { return nil }
            if let response = standIn(for: answer.status, load) { return response }
            return response(answer, body, load, isLeader: true)
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
        if request.method.kind == .head {
            return response(answer, .empty, load, isLeader: isLeader)
        }
        if let special = presentSpecially(chain, answer, load, isLeader: isLeader) {
            return special
        }
        guard let body = chain.stream(for: isLeader ? .asker : .follower) else { return nil }
        return response(answer, body, load, isLeader: isLeader)
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
            let lines = fields.withUnsafeBytes { ByteChunk(copying: $0) }
            var response = response(answer, lines, .empty, load, isLeader: isLeader)
            response.status = 304
            return response
        }
        guard evaluation == .rangeAllowed, let size = chain.expectedCount,
            let ranges = RangeSet(request.fields.section),
            case .single(let range) = ranges.resolve(bodySize: size),
            let body = chain.stream(range)
        else { return nil }
        var response = response(answer, answer.sharedLines, body, load, isLeader: isLeader)
        response.status = 206
        response.fields["Content-Range"] = ContentRange(range: range, bodySize: size).text
        response.fields["Content-Length"] = String(range.count)
        return response
    }

    private func response(
        _ answer: FlightAnswer,
        _ body: BodyStream,
        _ load: Load,
        isLeader: Bool
    ) -> CacheResponse {
        let lines = isLeader ? answer.lines : answer.sharedLines
        return response(answer, lines, body, load, isLeader: isLeader)
    }

    private func response(
        _ answer: FlightAnswer,
        _ lines: ByteChunk,
        _ body: BodyStream,
        _ load: Load,
        isLeader: Bool
    ) -> CacheResponse {
        var info = CacheInfo(source: isLeader ? .origin : .collapsed)
        info.originStatus = answer.status
        if let refusal = answer.refusal { info.refusal = refusal }
        info.isStored = answer.facts != nil
        if let stored = answer.facts {
            info.remainingSeconds = -stored.stalenessSeconds(at: cache.clock.nowSeconds)
        }
        let fields = ServedFields(
            lines,
            ageSeconds: nil,
            cacheStatus(answer, load, info, isLeader: isLeader)
        )
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
    ) -> ServedFields.Status {
        guard cache.configuration.cacheStatus == .added else { return .omitted }
        var status = CacheStatus(
            identifier: cache.configuration.name,
            outcome: .forwarded(forward(load))
        )
        status.forwardStatus = answer.status
        status.isStored = info.isStored
        status.isCollapsed = !isLeader
        status.ttlSeconds = info.isStored ? info.remainingSeconds : nil
        status.detail = answer.refusal?.description
        return .other(status)
    }

    /// Why the request went forward, in the words of RFC 9211 §2.2.
    private func forward(_ load: Load) -> CacheStatus.Forward {
        if case .method = load.selection.miss { return .method }
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
        var info = CacheInfo(source: .fallback, tier: load.selection.tier)
        info.ageSeconds = stored.facts.ageSeconds(at: cache.clock.nowSeconds)
        info.originStatus = status
        if let error { info.fallbackError = error }
        return cache.serve(stored, to: request, facts, as: info)
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
