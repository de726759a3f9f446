import HTTPCaching

/// One attempt of a fetch: asks the origin, and turns the head of its response into an outcome.
///
/// An object: the wait for the head holds one reference.
final class FetchAttempt: Sendable {
    let services: Services
    let context: FetchContext
    /// The place among the attempts of the flight, from 1 on.
    let number: Int
    /// The question to the origin.
    let question: FetchQuestion
    /// The context's ticket, with the permit of this attempt.
    let ticket: RemovalLedger.Ticket
    /// Whether other requests may join the fetch.
    private let isShared: Bool

    init(
        _ services: Services,
        _ context: FetchContext,
        number: Int,
        _ ticket: consuming RemovalLedger.Ticket,
        isShared: Bool
    ) {
        self.services = services
        self.context = context
        self.number = number
        self.ticket = ticket
        self.isShared = isShared
        question = Self.question(for: context, services, isShared: isShared)
    }

    var tiers: TieredStore { services.tiers }

    /// The outcome of an answer, if it needs no other look-up, question or removal; most need none.
    func outcomeAtOnce(_ answer: OriginAnswer, _ decision: FetchDecision) -> FetchOutcome? {
        switch question {
        case .plain, .whole: break
        case .conditional, .part, .head, .rest: return nil
        }
        switch decision {
        case .store(let response, let lifetime):
            guard response.facts.varyMemberCount == 0 else { return nil }
            return storableOutcome(answer, response, lifetime, numbered(answer), variance: nil)
        case .refuse(let response, let refusal):
            guard !maySupersede(response) else { return nil }
            endShared(by: response)
            return refused(answer, StoreRefusalReason(refusal.code), .refused(response))
        case .fail: return unstored(answer, .failure)
        case .confirm, .storePost, .askPlainly, .misbehaved: return nil
        }
    }

    func outcome(_ answer: OriginAnswer, _ decision: FetchDecision) async throws -> FetchOutcome {
        try await outcome(answer, to: question, decision)
    }

    private func outcome(
        _ answer: OriginAnswer,
        to question: FetchQuestion,
        _ decision: FetchDecision
    ) async throws -> FetchOutcome {
        let arrival = expected(answer)
        if mayEndStored, FetchDecision.endsStored(answer, to: question, context) {
            await end(context.lookup.key)
        }
        if case .askPlainly = decision, let next = nextQuestion(after: question) {
            answer.body.cancel()
            let answer = try await ask(next)
            let decision = FetchDecision.decide(answer, to: next, context, services)
            return try await self.outcome(answer, to: next, decision)
        }
        var outcome = try await perform(decision, answer, arrival)
        outcome.order = answer.order
        if case .rest(let rest) = question, rest.isBrought(by: answer) {
            outcome.answer = outcome.answer.joined(to: rest)
        }
        return outcome
    }

    /// The question to the origin, given the stored response that the request selects.
    private static func question(
        for context: FetchContext,
        _ services: Services,
        isShared: Bool
    ) -> FetchQuestion {
        let question = questionAboutStored(context, services)
        guard case .plain = question, isShared,
            context.leavesOutConditions(services.configuration.caching)
        else { return question }
        return .whole
    }

    /// The question after one whose answer does not fit; `nil` after the client's own request.
    ///
    /// The client's own conditions and ranges would not suit the other requests of a shared fetch.
    private func nextQuestion(after question: FetchQuestion) -> FetchQuestion? {
        switch question {
        case .plain: return nil
        case .whole: return .plain
        case .part: return .whole
        case .conditional, .head, .rest:
            let isNarrow = context.facts.isConditional || context.facts.hasRange
            return isShared && isNarrow && !Mutant.asksAsTheFirstClient.isOn ? .whole : .plain
        }
    }

    private static func questionAboutStored(
        _ context: FetchContext,
        _ services: Services
    ) -> FetchQuestion {
        guard context.policy.reads, let stored = context.lookup.stored else { return .plain }
        let question = OriginQuestion.decide(
            request: context.asked.request.fields.section,
            requestFacts: context.facts,
            stored: stored.fields(),
            storedFacts: stored.facts,
            parts: stored.parts,
            nowSeconds: services.clock.nowSeconds
        )
        switch question {
        case .asItCame:
            guard context.purpose == .refresh, context.facts.hasRange,
                stored.facts.flags.contains(.isPartial)
            else { return .plain }
            return .part(stored)
        case .confirm:
            let isHeadFirst =
                context.policy.validation == .head && context.asked.request.method == .get
            return isHeadFirst ? .head(stored) : .conditional(stored)
        case .complete(let range, let gap):
            return RestOfRange(stored, range: range, gap: gap).map(FetchQuestion.rest) ?? .plain
        }
    }

    /// Asks the attempt's question.
    nonisolated(nonsending) func ask() async throws -> OriginAnswer { try await ask(question) }

    nonisolated(nonsending) private func ask(
        _ question: FetchQuestion
    ) async throws -> OriginAnswer {
        try await exchange.ask(exchange.request(for: context, question))
    }

    /// Asks without a task, as `OriginExchange.begin` does.
    func begin(
        at origin: any LoopOrigin,
        _ completion: @escaping @Sendable (consuming BegunAnswer) -> Void
    ) -> (any LoopExchange)? {
        exchange.begin(exchange.request(for: context, question), at: origin, completion)
    }

    private var exchange: OriginExchange {
        OriginExchange(
            services: services,
            key: context.lookup.flightKey.hash,
            resource: context.key.hash
        )
    }

    /// Marks the response before the first wait: one with a later head may be stored meanwhile.
    private func expected(_ answer: OriginAnswer) -> ExpectedArrival {
        tiers.arrivals.expect(context.key.hash, order: answer.order, fields: answer.fields)
    }

    private func perform(
        _ decision: FetchDecision,
        _ answer: OriginAnswer,
        _ arrival: ExpectedArrival
    ) async throws -> FetchOutcome {
        switch decision {
        case .confirm:
            answer.body.cancel()
            guard let stored = context.lookup.stored else {
                preconditionFailure("Only a stored response is confirmed")
            }
            let confirmation = Confirmation(
                services: services,
                context: context,
                ticket: numbered(answer)
            )
            return await confirmation.freshen(stored, answer)
        case .store(let response, let lifetime):
            return await storableOutcome(answer, response, lifetime, numbered(answer), arrival)
        case .storePost(let response, let lifetime):
            return await storablePostOutcome(answer, response, lifetime, arrival)
        case .refuse(let response, let refusal):
            await endSuperseded(by: response, arrival)
            return refused(answer, StoreRefusalReason(refusal.code), .refused(response))
        case .fail: return unstored(answer, .failure)
        case .misbehaved, .askPlainly:
            answer.body.cancel()
            throw CacheError.misbehaved("The origin sent status 304, but no condition was sent")
        }
    }

    /// Whether no removal since the attempt began covers its answer.
    func isCurrent(_ answer: OriginAnswer) -> Bool {
        let names = services.configuration.caching.tags(in: answer.fields)
        let tags = names.flatMap { TagList($0) } ?? TagList()
        return tiers.ledger.permits(context.key.hash, tags, since: ticket)
    }

    /// The ticket of this attempt, with the place of the answer's head.
    private func numbered(_ answer: OriginAnswer) -> RemovalLedger.Ticket {
        assert(answer.order > 0, "each head has a place")
        var ticket = ticket
        ticket.order = answer.order
        return ticket
    }

    func refused(
        _ answer: OriginAnswer,
        _ refusal: StoreRefusalReason,
        _ sharing: FetchOutcome.Sharing = .askerOnly
    ) -> FetchOutcome {
        let isError = StatusFacts(answer.status).isServerError
        return unstored(answer, isError ? .failure : sharing, refusal)
    }

    /// The outcome for the request that was sent only, which reads the body by itself.
    private func unstored(
        _ answer: OriginAnswer,
        _ sharing: FetchOutcome.Sharing,
        _ refusal: StoreRefusalReason? = nil
    ) -> FetchOutcome {
        if case .arriving(let body) = answer.body {
            body.onFailure = { [services, context] error in
                services.recorder.originFailed(error, context.asked.request)
            }
        }
        return .unstored(answer, sharing, refusal: refusal)
    }

    // MARK: Not storing

    /// Whether the attempt may remove what is stored: it still holds its flight.
    private var mayEndStored: Bool {
        context.policy.writes
            && (ticket.isPermitted || Mutant.letsLateRefusalsRemove.isOn)
    }

    /// Whether a stored response may exist that this one ends; if it cannot, nothing is looked up.
    private func maySupersede(_ response: ReceivedResponse) -> Bool {
        guard mayEndStored else { return false }
        if context.policy.reads, context.found.stored == nil, !mustLookAgain { return false }
        return response.supersession != .nothing
    }

    /// Whether the request's own look-up does not tell what is stored.
    private var mustLookAgain: Bool {
        !context.policy.reads || context.found.isUncertain && !Mutant.overlooksRefusals.isOn
    }

    /// Removes the fleet's copy of a stored response that this one ends, if the request was a reload
    /// and did not look at it.
    private func endShared(by response: ReceivedResponse) {
        // The outlet comes last: most requests are no reload, and need no copy of it.
        guard services.configuration.caching.demandsOrigin(context.facts, context.policy),
            mayEndStored, context.found.stored == nil, response.supersession != .nothing,
            let outlet = tiers.outlet
        else { return }
        outlet.removed(context.lookup.key)
    }

    /// Removes the stored response that this one replaces without being stored itself.
    ///
    /// It is looked up here for a reload, which did not look at it, and if the look-up was refused.
    private func endSuperseded(by response: ReceivedResponse, _ arrival: ExpectedArrival) async {
        guard maySupersede(response) else { return }
        let supersession = response.supersession
        var found = context.found
        if mustLookAgain {
            let fields = context.asked.request.fields.section
            found = await Lookup(services).result(for: context.key, fields)
        }
        // A response that has been stored during the look-up is newer.
        let isOvertaken = tiers.arrivals.isOvertaken(arrival, under: found.key.hash)
        guard let stored = found.stored else {
            // A look-up whose task is cancelled is uncertain too, and says nothing about the device.
            if found.isUncertain, !isOvertaken, !Task.isCancelled {
                // The device hangs, and would return it later. Without the index no variant is found.
                await tiers.remove(context.key)
            } else if !context.policy.reads, supersession == .ends,
                !tiers.backing.isLookUpConclusive
            {
                await tiers.remove(found.key)
            }
            return
        }
        if isOvertaken { return }
        let isAnother = Conditional.tellsOfAnotherVersion(
            stored: stored.fields(),
            new: response.fields
        )
        if isAnother || supersession == .ends, !Mutant.keepsTheReplaced.isOn {
            await end(found.key)
        }
    }

    private func end(_ key: RequestKey) async {
        let selected = SelectedResponses(services: services, context: context)
        await selected.end(key) { await tiers.remove($0) }
    }
}
