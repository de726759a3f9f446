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
    private let ticket: RemovalLedger.Ticket
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

    private var tiers: TieredStore { services.tiers }

    /// The outcome of an answer, if it needs no other look-up, question or removal; most need none.
    func outcomeAtOnce(_ answer: OriginAnswer, _ decision: FetchDecision) -> FetchOutcome? {
        switch question {
        case .plain, .whole: break
        case .conditional, .head, .rest: return nil
        }
        switch decision {
        case .store(let response, let lifetime):
            guard case .absent = Vary.read(answer.fields) else { return nil }
            return storableOutcome(answer, response, lifetime, numbered(answer), variance: nil)
        case .refuse(let response, let refusal):
            guard !maySupersede(response) else { return nil }
            endShared(by: response)
            return refused(answer, StoreRefusalReason(refusal.code))
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
            await tiers.remove(context.lookup.key)
        }
        if case .askPlainly = decision, let next = nextQuestion(after: question) {
            answer.body.cancel()
            let answer = try await ask(next)
            let decision = FetchDecision.decide(answer, to: next, context, services)
            return try await self.outcome(answer, to: next, decision)
        }
        var outcome = try await perform(decision, answer, arrival)
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
        case .asItCame: return .plain
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
            return refused(answer, StoreRefusalReason(refusal.code))
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
        return tags.bytes.withUnsafeBytes {
            tiers.ledger.permits(context.key.hash, tags: $0, since: ticket)
        }
    }

    /// The ticket of this attempt, with the place of the answer's head.
    private func numbered(_ answer: OriginAnswer) -> RemovalLedger.Ticket {
        assert(answer.order > 0, "each head has a place")
        var ticket = ticket
        ticket.order = answer.order
        return ticket
    }

    private func refused(_ answer: OriginAnswer, _ refusal: StoreRefusalReason) -> FetchOutcome {
        let isError = StatusFacts(answer.status).isServerError
        return unstored(answer, isError ? .failure : .askerOnly, refusal)
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

    // MARK: Storing

    /// The outcome of a response that every waiter may get and that may be stored; first enters the
    /// variant, if it varies.
    private func storableOutcome(
        _ answer: OriginAnswer,
        _ response: ReceivedResponse,
        _ lifetime: FreshnessLifetime,
        _ ticket: RemovalLedger.Ticket,
        _ arrival: ExpectedArrival
    ) async -> FetchOutcome {
        guard mayStore else { return refused(answer, .policy) }
        let variance: Variance?
        switch Vary.read(answer.fields) {
        case .absent: variance = nil
        case .selecting(let vary): variance = await enter(vary, ticket)
        case .everything:
            return refused(answer, StoreRefusalReason(StoreRefusal.varyOnEverything.code))
        case .tooMany: return refused(answer, StoreRefusalReason(StoreRefusal.varyTooLong.code))
        }
        return storableOutcome(answer, response, lifetime, ticket, arrival, variance: variance)
    }

    private var mayStore: Bool { context.policy.writes || context.purpose == .post }

    private func storableOutcome(
        _ answer: OriginAnswer,
        _ response: ReceivedResponse,
        _ lifetime: FreshnessLifetime,
        _ ticket: RemovalLedger.Ticket,
        _ arrival: ExpectedArrival? = nil,
        variance: Variance?
    ) -> FetchOutcome {
        guard mayStore else { return refused(answer, .policy) }
        let key = variance?.key ?? context.key
        var builder = EntryBuilder(response, lifetime: lifetime, under: key)
        var storage = PendingBody.Storage.whole
        if answer.status == 206, let range = response.facts.contentRange { storage = .part(range) }
        let isForEveryone = !StatusFacts(answer.status).answersOneClientOnly && storage == .whole
        let refusal =
            variance?.isStored == false
            ? .tooManyVariants : headRefusal(answer, storage, &builder)
        var answer = answer
        let shared = share(&answer)
        var ticket = ticket
        let arrivals = tiers.arrivals
        if let arrival {
            ticket.arrival = arrivals.begin(key.hash, arrival, fields: builder.fields)
        } else if shared.isStoredLater || refusal != nil || storage != .whole
            || !tiers.ledger.isCurrent(key.hash, since: ticket)
        {
            ticket.arrival = arrivals.begin(
                key.hash,
                order: ticket.order,
                fields: builder.fields
            )
        }
        let body = PendingBody(
            shared: shared,
            origin: answer,
            builder: builder,
            storage: refusal == nil ? storage : .none,
            ticket: ticket
        )
        let isLeft = refusal == nil && context.asked.request.options.leavesStoring
        let flightAnswer = FlightAnswer(
            status: answer.status,
            fields: answer.fields,
            sharedFields: builder.fields,
            content: .shared(body.shared),
            facts: builder.facts,
            refusal: refusal,
            variance: variance,
            pendingStore: isLeft
                ? PendingStore(response, builder.storageClass, since: ticket) : nil,
            arrival: ticket.arrival?.mark
        )
        return FetchOutcome(
            answer: flightAnswer,
            sharing: isForEveryone ? .everyone : .askerOnly,
            body: body
        )
    }

    /// The body as all requests of the flight read it.
    ///
    /// A body that arrived whole is present at once, unless the application is asked about it, or
    /// it is too large for its readers' window or to be gathered in memory.
    private func share(_ answer: inout OriginAnswer) -> SharedBody {
        let windowBytes = services.configuration.originLimits.windowSize.bytes
        if case .present(let chunk) = answer.body {
            if chunk.count < windowBytes, chunk.count <= tiers.gatheredBytesMax,
                services.configuration.hooks.willStore == nil,
                !context.asked.request.options.leavesStoring
            {
                return .present(chunk)
            }
            let body = MeasuredBody(BodyStream(chunk), expected: chunk.count) { _ in }
            answer.body = .arriving(body)
        }
        return .arriving(
            BodyChain(
                expectedCount: answer.expectedCount,
                windowBytes: windowBytes,
                budget: services.bodies
            )
        )
    }

    private func enter(_ vary: Vary, _ ticket: RemovalLedger.Ticket) async -> Variance {
        let registry = VariantRegistry(
            services: services,
            key: context.key,
            fields: context.asked.request.fields.section,
            ticket: ticket
        )
        return await registry.enter(vary, flightKey: context.lookup.flightKey.hash)
    }

    /// Gives the entry its tags and its class.
    ///
    /// - Returns: The reason not to keep the response, as far as its head tells.
    private func headRefusal(
        _ answer: OriginAnswer,
        _ storage: PendingBody.Storage,
        _ builder: inout EntryBuilder
    ) -> StoreRefusalReason? {
        if case .part(let content) = storage {
            // A part of a whole of unknown size answers no request, unless it joins one whose size
            // is known.
            if content.bodySize == nil, context.lookup.stored?.parts == nil { return .invalidPart }
            if let count = answer.expectedCount {
                if content.range?.count != count { return .invalidPart }
                // A part is gathered in memory, also if the disk has room for it.
                if count > tiers.gatheredBytesMax { return .tooLarge }
            }
        }
        if context.asked.request.options.leavesStoring, context.facts.hasRange {
            return .unproposedPart
        }
        let options = services.configuration.caching
        let named = options.tags(in: builder.fields)
        guard let tags = named.flatMap({ TagList($0) }) else { return .tooManyTags }
        builder.tags = tags
        builder.storageClass = context.policy.storageClass ?? options.storageClass
        guard let bodyBytes = answer.expectedCount else { return nil }
        let headBytes =
            builder.key.bytes.count + tags.bytes.count + builder.fields.bytes.count
        return tiers.hasRoom(forBody: bodyBytes, headBytes: headBytes) ? nil : .tooLarge
    }

    /// The outcome of a response to a POST that may answer later GETs.
    ///
    /// The POST first removes what is stored, and forbids fetches under way to store; its own
    /// response gets a new ticket and may be stored.
    private func storablePostOutcome(
        _ answer: OriginAnswer,
        _ response: ReceivedResponse,
        _ lifetime: FreshnessLifetime,
        _ arrival: ExpectedArrival
    ) async -> FetchOutcome {
        if await tiers.remove(context.key) { services.recorder.counters.add(.invalidations) }
        var later = tiers.ledger.ticket()
        later.permit = ticket.permit
        // The origin's answer is as old as the request to it.
        later.fleetPosition = ticket.fleetPosition
        later.order = answer.order
        return await storableOutcome(answer, response, lifetime, later, arrival)
    }

    // MARK: Not storing

    /// Whether the attempt may remove what is stored: it still holds its flight.
    private var mayEndStored: Bool {
        context.policy.writes
            && (ticket.permit?.isValid != false || Mutant.letsLateRefusalsRemove.isOn)
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
        guard let outlet = tiers.outlet, mayEndStored, context.found.stored == nil,
            services.configuration.caching.demandsOrigin(context.facts, context.policy),
            response.supersession != .nothing
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
        guard let stored = found.stored else {
            if !context.policy.reads, supersession == .ends, !tiers.backing.isLookUpConclusive {
                await tiers.remove(found.key)
            }
            return
        }
        // A response that has been stored during the look-up is newer.
        if tiers.arrivals.isOvertaken(arrival, under: found.key.hash) { return }
        let isAnother = Conditional.tellsOfAnotherVersion(
            stored: stored.fields(),
            new: response.fields
        )
        if isAnother || supersession == .ends, !Mutant.keepsTheReplaced.isOn {
            await tiers.remove(found.key)
        }
    }
}
