import HTTPCaching

/// Responses that may be stored.
extension FetchAttempt {
    /// The outcome of a response that every waiter may get and that may be stored; first enters the
    /// variant, if it varies.
    func storableOutcome(
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
        case .selecting(let vary): variance = await enter(vary, ticket, arrival)
        case .everything:
            return refused(answer, StoreRefusalReason(StoreRefusal.varyOnEverything.code))
        case .tooMany: return refused(answer, StoreRefusalReason(StoreRefusal.varyTooLong.code))
        }
        return storableOutcome(answer, response, lifetime, ticket, arrival, variance: variance)
    }

    private var mayStore: Bool { context.policy.writes || context.purpose == .post }

    func storableOutcome(
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
        let storage = storage(of: answer, response)
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
            || !tiers.ledger.isCurrent(key.hash, since: ticket) || !ticket.isPermitted
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
            variance: variance,
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
            isForbidden: !tiers.ledger.permits(key.hash, builder.tags, since: ticket),
            variance: variance,
            pendingStore: isLeft
                ? PendingStore(response, builder.storageClass, under: key, since: ticket) : nil,
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

    private func enter(
        _ vary: Vary,
        _ ticket: RemovalLedger.Ticket,
        _ arrival: ExpectedArrival
    ) async -> Variance {
        let registry = VariantRegistry(
            services: services,
            key: context.key,
            fields: context.asked.request.fields.section,
            ticket: ticket,
            arrival: arrival,
            storageClass: storageClass,
            mayStayInMemory: services.configuration.hooks.willStore != nil
                || context.asked.request.options.leavesStoring
        )
        return await registry.enter(vary, flightKey: context.lookup.flightKey.hash)
    }

    private func storage(
        of answer: OriginAnswer,
        _ response: ReceivedResponse
    ) -> PendingBody.Storage {
        guard answer.status == 206, let range = response.facts.contentRange else { return .whole }
        return .part(range, hasWholeHead: hasWholeHead(answer))
    }

    /// Whether a 206 has all fields of the representation.
    ///
    /// If the version is the one of the request's If-Range, the origin leaves out fields that the
    /// client has (RFC 9110 §15.3.7); an origin that sends Content-Type leaves out none.
    private func hasWholeHead(_ answer: OriginAnswer) -> Bool {
        let isIfRangeMet: Bool
        if case .rest(let rest) = question {
            isIfRangeMet = rest.isOfStoredVersion(answer)
        } else {
            isIfRangeMet = isIfRangeMetByClient(answer)
        }
        return !isIfRangeMet || answer.fields.contains(lowercased: "content-type")
            || Mutant.takesEveryPartForWhole.isOn
    }

    /// Whether the response may have the version of the client's If-Range.
    private func isIfRangeMetByClient(_ answer: OriginAnswer) -> Bool {
        guard let validator = context.asked.request.fields["If-Range"] else { return false }
        let validators = ["ETag", "Last-Modified"].compactMap { answer.fields.first($0) }
        return validators.isEmpty || validators.contains(validator)
    }

    private var storageClass: StorageClass {
        context.policy.storageClass ?? services.configuration.caching.storageClass
    }

    /// Gives the entry its tags and its class.
    ///
    /// - Returns: The reason not to keep the response, as far as its head tells.
    private func headRefusal(
        _ answer: OriginAnswer,
        _ storage: PendingBody.Storage,
        _ builder: inout EntryBuilder
    ) -> StoreRefusalReason? {
        if case .part(let content, let hasWholeHead) = storage {
            // A part of a whole of unknown size answers no request, unless it joins one whose size
            // is known.
            let isComplete = content.bodySize != nil && hasWholeHead
            if !isComplete, context.lookup.stored?.parts == nil { return .invalidPart }
            if let count = answer.expectedCount {
                if content.range?.count != count { return .invalidPart }
                // A part is gathered in memory, also if the disk has room for it.
                if count > tiers.gatheredBytesMax { return .tooLarge }
            }
        }
        if context.asked.request.options.leavesStoring, context.facts.hasRange {
            return .unproposedPart
        }
        let named = services.configuration.caching.tags(in: builder.fields)
        guard let tags = named.flatMap({ TagList($0) }) else { return .tooManyTags }
        builder.tags = tags
        builder.storageClass = storageClass
        guard let bodyBytes = answer.expectedCount else { return nil }
        let headBytes =
            builder.key.bytes.count + tags.bytes.count + builder.fields.bytes.count
        return tiers.hasRoom(forBody: bodyBytes, headBytes: headBytes) ? nil : .tooLarge
    }

    /// The outcome of a response to a POST that may answer later GETs.
    ///
    /// The POST first removes what is stored, and forbids fetches under way to store. Its own response
    /// may be stored, unless another removal since the POST began covers it.
    func storablePostOutcome(
        _ answer: OriginAnswer,
        _ response: ReceivedResponse,
        _ lifetime: FreshnessLifetime,
        _ arrival: ExpectedArrival
    ) async -> FetchOutcome {
        let removal = await tiers.remove(context.key, for: ticket)
        if removal.isRemoved { services.recorder.counters.add(.invalidations) }
        var own = removal.ticket
        own.order = answer.order
        return await storableOutcome(answer, response, lifetime, own, arrival)
    }
}
