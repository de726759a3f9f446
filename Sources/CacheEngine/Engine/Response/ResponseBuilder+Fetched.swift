import HTTPCaching

/// Responses from a fetch.
extension ResponseBuilder {
    /// The response to one request that waited; `nil` if the body broke off, or is too far ahead to
    /// be joined.
    ///
    /// `isAsker` is true for the request that was sent.
    func response(
        _ answer: FlightAnswer,
        to context: FetchContext,
        isAsker: Bool
    ) -> CacheResponse? {
        switch answer.content {
        case .confirmed(let stored):
            var info = CacheInfo(
                source: .revalidated,
                tier: context.lookup.tier,
                ageSeconds: stored.facts.ageSeconds(at: services.clock.nowSeconds)
            )
            info.originStatus = answer.status
            info.wasFresh = forward(context) == .request
            if let refusal = answer.refusal { info.refusal = refusal }
            if isAsker { info.originFields = HeaderFields(answer.fields) }
            var response = response(stored, to: context.asked.request, context.facts, info)
            if isAsker {
                let stored = stored.fields()
                response?.fields.append(unstoredFields(of: answer, asStored: stored, context))
            }
            return response
        case .found(let stored): return found(stored, context)
        case .own(let body):
            if let standIn = fallback(for: answer.status, context) { return standIn }
            return isAsker ? own(answer, body, context) : nil
        case .shared(let body):
            return shared(body, answer, context, isAsker: isAsker)
        }
    }

    /// The fields of the origin's response that the stored one, with the fields `stored`, lacks.
    ///
    /// They are for the client whose request was sent: its cookies, and the fields that directives
    /// name.
    private func unstoredFields(
        of answer: FlightAnswer,
        asStored stored: FieldSection,
        _ context: FetchContext
    ) -> FieldSection {
        Conditional.unstoredFields(
            of: answer.fields,
            confirming: stored,
            rules: services.storingRules(context.policy)
        )
    }

    /// The response from the stored lines of `answer`, with the other lines for the client whose
    /// request was sent.
    private func addingUnstoredFields(
        of answer: FlightAnswer,
        to response: consuming CacheResponse,
        _ context: FetchContext
    ) -> CacheResponse {
        response.fields.append(unstoredFields(of: answer, asStored: answer.fields, context))
        return response
    }

    /// The response that another machine has stored; `nil` if this request may not use it.
    private func found(_ stored: StoredResponse, _ context: FetchContext) -> CacheResponse? {
        let step = ReuseStep(shared: stored, for: context, services)
        guard case .respond(let source, let age, _) = step else { return nil }
        let info = CacheInfo(source: source, tier: .shared, ageSeconds: age)
        return response(stored, to: context.asked.request, context.facts, info)
    }

    /// The response with a body that only the request that was sent may read.
    ///
    /// The client's own conditions are evaluated against it: the request to the origin may have
    /// carried the cache's conditions instead.
    private func own(
        _ answer: FlightAnswer,
        _ body: consuming BodyStream,
        _ context: FetchContext
    ) -> CacheResponse {
        if let rest = answer.rest { body = rest.body(body) }
        let response = fetched(answer, .asSent, body, context, isAsker: true)
        guard answer.status == 200, !context.facts.flags.isDisjoint(with: .readConditions) else {
            return response
        }
        let now = services.clock.nowSeconds
        let facts = ReceivedResponse(
            status: answer.status,
            fields: answer.fields,
            to: context.facts,
            rules: services.storingRules(context.policy),
            requestSeconds: now,
            responseSeconds: now
        ).storedFacts(FreshnessLifetime(seconds: 0, source: .none))
        guard Self.hasComparand(context.facts, in: facts) else { return response }
        let evaluation = conditions(
            of: context.asked.request.fields.section,
            context.facts,
            on: facts
        ) {
            answer.fields.withUnsafeBytes($0)
        }
        return evaluation == .notModified ? notModified(response) : response
    }

    /// Whether the client's condition compares with a validator of a response that is not stored.
    ///
    /// Without Last-Modified, If-Modified-Since is ignored (RFC 9110 §13.1.3). Date stands in for it
    /// in stored responses only (RFC 9111 §4.3.2).
    private static func hasComparand(_ request: RequestFacts, in facts: StoredFacts) -> Bool {
        request.flags.contains(.hasIfNoneMatch) || !request.flags.contains(.hasIfModifiedSince)
            || facts.lastModifiedSeconds != nil
    }

    /// The response with a body that all waiters may read: the whole of it, a 304, or a part.
    private func shared(
        _ body: SharedBody,
        _ answer: FlightAnswer,
        _ context: FetchContext,
        isAsker: Bool
    ) -> CacheResponse? {
        let facts = context.facts
        let lines = isAsker ? Lines.asSent : .asStored
        if answer.status == 200, let stored = answer.facts,
            answer.refusal == nil || Self.hasComparand(facts, in: stored)
        {
            let evaluation = conditions(of: context.asked.request.fields.section, facts, on: stored)
            {
                answer.sharedFields.withUnsafeBytes($0)
            }
            switch evaluation {
            case .notModified:
                body.decline()
                let response = notModified(
                    fetched(answer, .asStored, .empty, context, isAsker: isAsker)
                )
                return isAsker ? addingUnstoredFields(of: answer, to: response, context) : response
            case .rangeAllowed:
                guard let size = body.expectedCount,
                    let ranges = RangeSet(context.asked.request.fields.section),
                    case .single(let range) = ranges.resolve(bodySize: size)
                else { break }
                guard let stream = body.stream(range, for: isAsker ? .asker : .follower) else {
                    body.decline()
                    return nil
                }
                let whole = fetched(answer, .asStored, .empty, context, isAsker: isAsker)
                let response = part(range, bodySize: size, stream, whole)
                return isAsker ? addingUnstoredFields(of: answer, to: response, context) : response
            case .full, .forward, .preconditionFailed: break
            }
        }
        if facts.method == .head {
            body.decline()
            return fetched(answer, lines, .empty, context, isAsker: isAsker)
        }
        guard let stream = body.stream(for: isAsker ? .asker : .follower) else {
            body.decline()
            return nil
        }
        let body = answer.rest?.body(stream) ?? stream
        var response = fetched(answer, lines, body, context, isAsker: isAsker)
        if let pending = answer.pendingStore, context.asked.request.options.leavesStoring {
            response.info.pendingStore = pending
        }
        return response
    }

    /// The lines of the origin's response that a response carries.
    private enum Lines {
        case asSent
        /// Without `Age`, which the cache generates (RFC 9111 §5.1).
        case asStored
    }

    /// A response with the head of the origin's response, and `body`.
    private func fetched(
        _ answer: FlightAnswer,
        _ lines: Lines,
        _ body: consuming BodyStream,
        _ context: FetchContext,
        isAsker: Bool
    ) -> CacheResponse {
        var info = CacheInfo(source: isAsker ? .origin : .collapsed)
        if case .asStored = lines {
            info.ageSeconds = answer.facts?.ageSeconds(at: services.clock.nowSeconds)
        }
        info.originStatus = answer.status
        if let refusal = answer.refusal { info.refusal = refusal }
        info.isStored = answer.mayBeStored
        if let stored = answer.facts, info.isStored {
            info.remainingSeconds = -stored.stalenessSeconds(at: services.clock.nowSeconds)
        }
        let fields: FieldSection =
            switch lines {
            case .asSent: answer.fields
            case .asStored: answer.sharedFields
            }
        let section = OwnLines.section(
            after: fields,
            ageSeconds: info.ageSeconds,
            services.statusName,
            cacheStatus(answer, context, info, isAsker: isAsker)
        )
        return CacheResponse(
            status: answer.status,
            fields: HeaderFields(section),
            body: body,
            info: info
        )
    }

    private func cacheStatus(
        _ answer: FlightAnswer,
        _ context: FetchContext,
        _ info: CacheInfo,
        isAsker: Bool
    ) -> CacheStatus? {
        guard services.configuration.cacheStatus == .added else { return nil }
        var status = CacheStatus(.forwarded(forward(context)))
        status.forwardStatus = answer.status
        status.isStored = info.isStored
        status.isCollapsed = !isAsker
        status.ttlSeconds = info.isStored ? info.remainingSeconds : nil
        status.detail = answer.refusal?.description
        return status
    }

    /// The reason why the request was forwarded, in the words of RFC 9211 §2.2.
    private func forward(_ context: FetchContext) -> CacheStatus.Forward {
        switch context.lookup.miss {
        case .uriMiss, .varyMiss: break
        default: return context.lookup.miss
        }
        if !context.policy.reads { return context.policy.writes ? .request : .bypass }
        // A request with no-store uses no stored response, not even for a condition.
        guard let stored = context.lookup.stored ?? context.found.stored else {
            return context.lookup.miss
        }
        if stored.facts.flags.contains(.isPartial) { return .partial }
        let facts = services.tiers.currentFacts(of: stored)
        let isUsable = facts.isFresh(at: services.clock.nowSeconds)
        return isUsable && !facts.flags.contains(.noCache) ? .request : .stale
    }

    // MARK: Standing in

    /// The stored response that is served in place of a failed fetch.
    ///
    /// - Throws: The failure, if no stored response may be served.
    func fallback(for error: any Error, _ context: FetchContext) throws -> CacheResponse {
        guard !(error is CancellationError), services.supervisor.isOpen,
            let response = fallback(for: .noResponse, context, error: error, status: nil)
        else { throw error }
        return response
    }

    private func fallback(for status: Int, _ context: FetchContext) -> CacheResponse? {
        fallback(for: .status(status), context, error: nil, status: status)
    }

    private func fallback(
        for failure: StaleOnError.Failure,
        _ context: FetchContext,
        error: (any Error)?,
        status: Int?
    ) -> CacheResponse? {
        guard context.policy.reads, let stored = context.lookup.stored,
            context.mayStandIn(stored, for: failure, services)
        else { return nil }
        var info = CacheInfo(
            source: .fallback,
            tier: context.lookup.tier,
            ageSeconds: stored.facts.ageSeconds(at: services.clock.nowSeconds)
        )
        info.originStatus = status
        if let error { info.fallbackError = error }
        return response(stored, to: context.asked.request, context.facts, info)
    }
}
