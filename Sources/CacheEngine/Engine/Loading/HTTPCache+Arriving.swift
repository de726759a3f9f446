import HTTPCaching

/// From a request to the head of its answer, and to what that means for who waits and what is kept.
extension HTTPCache {
    func arrive(_ load: Load) async throws -> Arrival {
        guard let stored = load.stored else {
            return try await judge(ask(originRequest(for: load, .plain), for: load.gateKey), load)
        }
        if load.policy.validation == .head, load.request.method == .get {
            let answer = try await ask(originRequest(for: load, .head(stored)), for: load.gateKey)
            if let arrival = await confirmByHead(stored, answer, load) { return arrival }
            return try await judge(ask(originRequest(for: load, .plain), for: load.gateKey), load)
        }
        let answer = try await ask(
            originRequest(for: load, .conditional(stored)),
            for: load.gateKey
        )
        if answer.status == 304 {
            answer.body.cancel()
            if let arrival = await confirm(stored, answer, load) { return arrival }
            return try await judge(ask(originRequest(for: load, .plain), for: load.gateKey), load)
        }
        if load.request.method == .head,
            let arrival = await confirmByHead(stored, answer, load)
        {
            return arrival
        }
        return try await judge(answer, load)
    }

    // MARK: Confirming

    /// Brings the stored response up to date with a 304; nil when that speaks of another one.
    private func confirm(
        _ stored: StoredResponse,
        _ answer: OriginAnswer,
        _ load: Load
    ) async -> Arrival? {
        let old = stored.fields()
        guard Conditional.identifies(stored: old, with304: answer.fields),
            !Conditional.changesSelection(stored: old, with304: answer.fields)
        else { return nil }
        return await freshen(stored, answer, load)
    }

    private func confirmByHead(
        _ stored: StoredResponse,
        _ answer: OriginAnswer,
        _ load: Load
    ) async -> Arrival? {
        defer { if answer.status == 304 || load.request.method == .get { answer.body.cancel() } }
        if answer.status == 304 { return await confirm(stored, answer, load) }
        let effect = Conditional.headFreshens(
            stored: stored.fields(),
            storedBodySize: stored.bodyCount,
            headStatus: answer.status,
            headFields: answer.fields
        )
        switch effect {
        case .freshens: return await freshen(stored, answer, load)
        // A load of the whole goes on to replace it; only a client's own HEAD ends its life.
        case .invalidates where load.policy.writes && load.request.method == .head:
            _ = tiers.remove(load.selection.key)
            return nil
        case .invalidates, .nothing: return nil
        }
    }

    private func freshen(
        _ stored: StoredResponse,
        _ answer: OriginAnswer,
        _ load: Load
    ) async -> Arrival {
        let rules = storingRules(load.policy)
        let fields = Conditional.freshen(
            stored: stored.fields(),
            with304: answer.fields,
            rules: rules,
            receivedAtSeconds: answer.responseSeconds
        )
        let current = await refreshed(stored, fields: fields, answer, load, rules)
        let flightAnswer = FlightAnswer(
            status: answer.status,
            fields: answer.fields,
            content: .confirmed(current.response),
            refusal: current.refusal
        )
        let isShareable = current.refusal == nil
        return Arrival(answer: flightAnswer, sharing: isShareable ? .everyone : .askerOnly)
    }

    /// Writes the stored response anew with the merged fields.
    private func refreshed(
        _ stored: StoredResponse,
        fields: FieldSection,
        _ answer: OriginAnswer,
        _ load: Load,
        _ rules: StoringRules
    ) async -> (response: StoredResponse, refusal: StoreRefusalReason?) {
        let response = ResponseFacts(
            status: Int(stored.facts.status),
            fields: fields,
            rules: rules,
            receivedAtSeconds: answer.responseSeconds
        )
        let request = load.factsForStoring
        let decision = StoreDecision.decide(
            request: request,
            response: response,
            rules: rules,
            receivedAtSeconds: answer.responseSeconds
        )
        var lifetime = FreshnessLifetime(seconds: 0, source: .none)
        var refusal: StoreRefusalReason?
        switch decision {
        case .store(let allowed): lifetime = allowed
        case .refuse(let reason): refusal = StoreRefusalReason(reason.code)
        }
        if let seconds = stored.ownLifetimeSeconds, refusal == nil {
            lifetime = FreshnessLifetime(seconds: seconds, source: .override)
        }
        let facts = StoredFacts(
            request: request,
            response: response,
            lifetime: lifetime,
            rules: rules,
            requestTimeSeconds: answer.requestSeconds,
            responseTimeSeconds: answer.responseSeconds
        )
        let metadata = StoredResponse.metadata(
            facts: facts,
            fields: fields,
            userInfo: stored.userInfo,
            ownLifetimeSeconds: stored.ownLifetimeSeconds
        )
        let renewed = EntryBlueprint(stored.entry, metadata: metadata)
        let new = renewed.isEncodable ? tiers.renewed(stored.stored, as: renewed) : stored.stored
        if load.policy.writes {
            if refusal == nil {
                await tiers.replace(stored.stored, by: new, since: load.ticket)
            } else {
                tiers.remove(load.selection.key)
            }
        }
        return (StoredResponse(new) ?? stored, refusal)
    }

    // MARK: Judging

    /// Decides what a whole answer means: who may have it, and whether it is kept.
    private func judge(_ answer: OriginAnswer, _ load: Load) async throws -> Arrival {
        if answer.status == 304, !load.facts.isConditional || load.stored != nil {
            answer.body.cancel()
            throw Self.misbehaved("The origin answered 304 to a request without condition")
        }
        let rules = storingRules(load.policy)
        let response = ResponseFacts(
            status: answer.status,
            fields: answer.fields,
            rules: rules,
            receivedAtSeconds: answer.responseSeconds
        )
        if let stored = load.selection.stored, load.policy.reads,
            mayStandIn(stored, for: .status(answer.status), load)
        {
            return failure(answer)
        }
        let decision = StoreDecision.decide(
            request: load.factsForStoring,
            response: response,
            rules: rules,
            receivedAtSeconds: answer.responseSeconds
        )
        guard case .store(let lifetime) = decision, load.request.method != .head else {
            if case .refuse(let reason) = decision { return unstored(answer, load, reason.code) }
            return unstored(answer, load, StoreRefusal.methodNotStored.code)
        }
        return try await storable(answer, response, lifetime, load, rules)
    }

    /// An error that something stored may stand in for.
    private func failure(_ answer: OriginAnswer) -> Arrival {
        let flightAnswer = FlightAnswer(
            status: answer.status,
            fields: answer.fields,
            content: .own(BodyStream(answer.body, count: answer.expectedCount))
        )
        return Arrival(answer: flightAnswer, sharing: .failure)
    }

    private func unstored(_ answer: OriginAnswer, _ load: Load, _ reason: String) -> Arrival {
        let flightAnswer = FlightAnswer(
            status: answer.status,
            fields: answer.fields,
            content: .own(BodyStream(answer.body, count: answer.expectedCount)),
            refusal: StoreRefusalReason(reason)
        )
        // What replaces a stored answer without being storable itself still ends its life.
        if load.policy.writes, load.stored != nil, (200...399).contains(answer.status) {
            tiers.remove(load.selection.key)
        }
        let isError = StatusFacts(answer.status).isServerError
        return Arrival(answer: flightAnswer, sharing: isError ? .failure : .askerOnly)
    }

    private func storable(
        _ answer: OriginAnswer,
        _ response: ResponseFacts,
        _ lifetime: FreshnessLifetime,
        _ load: Load,
        _ rules: StoringRules
    ) async throws -> Arrival {
        let fields = StoredFields.make(
            from: answer.fields,
            response: response,
            rules: rules,
            receivedAtSeconds: answer.responseSeconds
        ).withoutAge
        let facts = StoredFacts(
            request: load.factsForStoring,
            response: response,
            lifetime: lifetime,
            rules: rules,
            requestTimeSeconds: answer.requestSeconds,
            responseTimeSeconds: answer.responseSeconds
        )
        guard load.policy.writes else { return unstored(answer, load, "policy") }
        let variance: FlightAnswer.Variance?
        switch Vary.read(answer.fields, namesMax: rules.varyNamesMax) {
        case .absent: variance = nil
        case .selecting(let vary): variance = await self.variance(vary, load)
        case .everything: return unstored(answer, load, StoreRefusal.varyOnEverything.code)
        case .tooMany: return unstored(answer, load, StoreRefusal.varyTooLong.code)
        }
        var isPart = Delivery.Storage.whole
        if answer.status == 206, let range = response.contentRange { isPart = .part(range) }
        let isForEveryone = !StatusFacts(answer.status).answersOneClientOnly && isPart == .whole
        let delivery = Delivery(
            chain: BodyChain(
                expectedCount: answer.expectedCount,
                windowBytes: configuration.originLimits.windowBytes
            ),
            body: answer.body,
            origin: answer,
            facts: facts,
            fields: fields,
            key: variance?.key ?? load.key,
            storage: isPart
        )
        let flightAnswer = FlightAnswer(
            status: answer.status,
            fields: answer.fields,
            sharedFields: fields,
            content: .arriving(delivery.chain),
            facts: facts,
            variance: variance
        )
        return Arrival(
            answer: flightAnswer,
            sharing: isForEveryone ? .everyone : .askerOnly,
            delivery: delivery
        )
    }

    /// Makes sure that later look-ups know what selects a variant of this resource.
    func variance(_ vary: Vary, _ load: Load) async -> FlightAnswer.Variance {
        let present = await tiers.entry(load.key)?.0.entry
        let desk = desk(load.key.hash)
        let isNewVariant = load.stored == nil
        return await desk.settleVariant(of: load.selection.key.hash, load.ticket.licence) {
            [self] in
            let current = tiers.peek(load.key) ?? present
            let known = current.flatMap { VariantIndex($0) }
            var index = known ?? VariantIndex(vary, nonce: Self.randomNonce())
            if isNewVariant || known?.sets.first != vary {
                index.add(
                    vary,
                    variantsMax: configuration.storing.variantsMax,
                    nonce: Self.randomNonce()
                )
                let blueprint = EntryBlueprint(
                    key: load.key,
                    metadata: index.metadata,
                    createdSeconds: clock.nowSeconds
                )
                _ = tiers.store(blueprint.entry(body: []), since: load.ticket)
            }
            let key = variantKey(load.key, index, vary, load.request.fields.section)
            return (FlightAnswer.Variance(index: index, vary: vary, key: key), key.hash)
        }
    }

    private static func randomNonce() -> UInt64 {
        var random = SystemRandomNumberGenerator()
        return random.next()
    }
}

extension FieldSection {
    /// Age belongs to one exchange; what was stored has its own way of knowing it.
    fileprivate var withoutAge: FieldSection {
        var fields = self
        fields.remove(lowercased: "age")
        return fields
    }
}

extension Load {
    var gateKey: KeyHash { selection.key.hash }

    /// The request as the rules of storing see it: answers under a key of the caller's own are
    /// judged as answers to GET.
    var factsForStoring: RequestFacts {
        guard request.options.key != nil else { return facts }
        var facts = facts
        facts.method = .get
        return facts
    }
}
