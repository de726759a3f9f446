import HTTPCaching

/// The effect of the head of an origin's response on a fetch.
///
///     question ─▶ head ─▶ confirm
///                      ├▶ store
///                      ├▶ refuse
///                      ├▶ fail         an error: a stored response may be served in its place
///                      └▶ askPlainly   the response does not fit: ask for the resource
///
/// A pure value: it performs nothing.
enum FetchDecision: Sendable {
    /// The stored response is current, and is updated with the head.
    case confirm
    /// The response may be stored with this lifetime.
    case store(ReceivedResponse, FreshnessLifetime)
    /// The response to a POST may be stored with this lifetime, and answers later GETs.
    case storePost(ReceivedResponse, FreshnessLifetime)
    /// Only the request that was sent gets the response.
    case refuse(ReceivedResponse, StoreRefusal)
    /// The response is an error; a stored response may be served in its place.
    case fail
    /// The response does not fit the client's request.
    case askPlainly
    /// The origin sent a 304 to a request without condition.
    case misbehaved
}

extension FetchDecision {
    /// Decides the effect of `answer` to `question`.
    static func decide(
        _ answer: OriginAnswer,
        to question: FetchQuestion,
        _ context: FetchContext,
        _ services: Services
    ) -> FetchDecision {
        switch question {
        case .plain:
            if answer.status == 304, !context.facts.isConditional { return .misbehaved }
        case .whole:
            if answer.status == 304 { return .askPlainly }
            if answer.status == 206, context.facts.hasRange { return .askPlainly }
        case .part(let stored):
            if answer.status == 304 {
                return effect(of: answer, on: stored) == .freshens ? .confirm : .askPlainly
            }
            // Another version, without these bytes: the whole replaces the stored parts.
            if answer.status == 416 { return .askPlainly }
        case .head(let stored):
            return effect(of: answer, on: stored) == .freshens ? .confirm : .askPlainly
        case .conditional(let stored):
            if answer.status == 304 {
                return effect(of: answer, on: stored) == .freshens ? .confirm : .askPlainly
            }
            if context.asked.request.method == .head, effect(of: answer, on: stored) == .freshens {
                return .confirm
            }
            if refusesOwnCondition(answer, on: stored, context) { return .askPlainly }
            // The request carried no Range: this part need not be the one that the client wants.
            if answer.status == 206, context.facts.hasRange { return .askPlainly }
        case .rest(let rest):
            if rest.isBrought(by: answer) { break }
            if [206, 304, 412, 416].contains(answer.status) { return .askPlainly }
        }
        return judge(answer, context, services)
    }

    /// Whether a client's own HEAD shows that the stored response is outdated.
    ///
    /// A fetch of the whole response then replaces it.
    static func endsStored(
        _ answer: OriginAnswer,
        to question: FetchQuestion,
        _ context: FetchContext
    ) -> Bool {
        guard case .conditional(let stored) = question, context.asked.request.method == .head else {
            return false
        }
        return context.policy.writes && effect(of: answer, on: stored) == .invalidates
    }

    /// Whether a 412 concerns the cache's own condition alone.
    ///
    /// The client's conditions were left out of the request. A method other than GET and HEAD asks
    /// by If-None-Match for a 412 if the named response is current (RFC 9110 §13.1.2): a client whose
    /// own field names the stored response gets that of the origin. To GET and HEAD it is a wrong
    /// response, which ends a refresh, because no client gets it.
    private static func refusesOwnCondition(
        _ answer: OriginAnswer,
        on stored: StoredResponse,
        _ context: FetchContext
    ) -> Bool {
        // Without validators, no condition was sent.
        guard answer.status == 412, stored.facts.flags.contains(.hasAnyValidator) else {
            return false
        }
        let method = context.facts.method
        if method == .get || method == .head { return context.purpose == .answer }
        if context.purpose == .refresh { return true }
        let fields = context.asked.request.fields.section
        return !stored.withEncodedFields { Conditional.ifNoneMatch(of: fields, names: $0) }
    }

    /// The effect of a 304, or of the response to HEAD, on the stored response.
    ///
    /// A 304 that does not identify the stored response, by its tag or its date, has no effect
    /// (`Conditional.identifies`): the resource is asked for next.
    private static func effect(
        of answer: OriginAnswer,
        on stored: StoredResponse
    ) -> Conditional.BodilessEffect {
        let old = stored.fields()
        guard answer.status == 304 else {
            return Conditional.headFreshens(
                stored: old,
                storedStatus: Int(stored.facts.status),
                storedBodySize: stored.bodyCount,
                headStatus: answer.status,
                headFields: answer.fields
            )
        }
        let isCurrent =
            Conditional.identifies(stored: old, with304: answer.fields)
            && !Conditional.changesSelection(stored: old, with304: answer.fields)
        return isCurrent ? .freshens : .nothing
    }

    /// Decides whether a complete response is stored.
    private static func judge(
        _ answer: OriginAnswer,
        _ context: FetchContext,
        _ services: Services
    ) -> FetchDecision {
        if let stored = context.lookup.stored, context.policy.reads,
            context.mayStandIn(stored, for: .status(answer.status), services)
        {
            return .fail
        }
        if let decision = judgePost(answer, context, services) { return decision }
        let response = answer.received(
            for: context.factsForStoring,
            services.storingRules(context.policy)
        )
        switch response.decision {
        case .store(let lifetime) where context.asked.request.method != .head:
            return .store(response, lifetime)
        case .store: return .refuse(response, .methodNotStored)
        case .refuse(let reason): return .refuse(response, reason)
        }
    }

    /// RFC 9110 §9.3.3: the response to a POST answers later GETs if it is explicitly fresh and the
    /// content of its target.
    ///
    /// Returns `nil` if it is not.
    private static func judgePost(
        _ answer: OriginAnswer,
        _ context: FetchContext,
        _ services: Services
    ) -> FetchDecision? {
        guard context.purpose == .post else { return nil }
        var rules = services.storingRules(context.policy)
        rules.storesPost = true
        let response = answer.received(for: context.facts, rules)
        guard case .store(let lifetime) = response.decision,
            Invalidation.postMayAnswerGet(
                status: answer.status,
                requestURL: context.asked.request.url.withoutFragment,
                responseFields: answer.fields
            )
        else { return nil }
        return .storePost(response, lifetime)
    }
}
