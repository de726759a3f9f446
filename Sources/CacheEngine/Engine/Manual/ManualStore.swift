import HTTPCaching

/// The store and look-up calls that the application makes itself.
struct ManualStore {
    let services: Services

    private var tiers: TieredStore { services.tiers }

    // MARK: Looking

    /// The stored response to the request, of any age; the origin is not asked and the store not
    /// changed.
    func storedResponse(for request: CacheRequest) async throws -> CacheResponse? {
        let (key, _) = try services.key(of: request)
        guard request.isAnsweredByKey else { return nil }
        let lookup = await Lookup(services).result(
            for: key,
            request.fields.section,
            mayRefuse: true
        )
        guard let stored = lookup.stored else {
            // A cache that is shut down finds nothing, although its disk may have the entry.
            guard services.supervisor.isOpen else { throw CacheError.cacheShutDown }
            return nil
        }
        let facts = RequestFacts(method: request.method.kind, fields: request.fields.section)
        let now = services.clock.nowSeconds
        let info = CacheInfo(
            source: tiers.currentFacts(of: stored).isFresh(at: now) ? .fresh : .stale,
            tier: lookup.tier,
            ageSeconds: stored.facts.ageSeconds(at: now)
        )
        return ResponseBuilder(services).response(stored, to: request, facts, info)
    }

    // MARK: Storing

    /// Stores a response under the request's key, in the variant that the request selects.
    ///
    /// `pending` is the store that a fetch has left to its caller: the rules of HTTP hold for it. A
    /// response without one is stored whatever they say.
    func store(
        _ response: CacheResponse,
        for request: CacheRequest,
        _ options: HTTPCache.ManualStoreOptions,
        as pending: PendingStore? = nil
    ) async throws -> StoreOutcome {
        guard services.supervisor.isOpen else { throw CacheError.cacheShutDown }
        let (key, _) = try services.key(of: request)
        if pending == nil { try checkAnswersOthers(response, request) }
        guard let tags = try tags(of: response, options) else {
            return await refuse(.notAdmitted, key, request, pending, because: .tooManyTags)
        }
        var ticket = pending?.ticket ?? tiers.ledger.ticket()
        let body = try await GivenBody(response.body, gatheredBytesMax: tiers.gatheredBytesMax)
        // A part is joined in memory, and only the disk has files.
        let needsMemory = response.status == 206 || options.place == .memoryOnly
        guard body.isGathered || !needsMemory else {
            return await refuse(.tooLarge, key, request, pending)
        }
        let expected = pending == nil ? expect(response, under: key, &ticket) : nil
        let received =
            pending?.received(status: response.status, fields: response.fields.section)
            ?? self.received(response, for: request)
        if pending != nil, case .refuse(let refusal) = received.decision {
            return await refuse(refusal, key, request, pending)
        }
        var builder = makeBuilder(received, under: key, options, as: pending)
        builder.tags = tags
        if response.status == 206 {
            let count = body.gathered.byteCount
            guard let held = Self.held(received.facts.contentRange, bodyCount: count) else {
                return await refuse(.invalidPart, key, request, pending)
            }
            builder.hold(held)
        }
        switch Vary.read(response.fields.section) {
        case .absent: break
        case .selecting(let vary):
            let variance = await enter(vary, of: key, request, ticket, expected, for: builder)
            guard variance.isStored else {
                return await refuse(.notAdmitted, variance.key, request, pending)
            }
            builder.key = variance.key
        // No key is that of the requests that the response answers.
        case .everything: return await refuse(.varyOnEverything, key, request, pending)
        case .tooMany: return await refuse(.varyTooLong, key, request, pending)
        }
        if let expected {
            let hash = builder.key.hash
            ticket.arrival = tiers.arrivals.begin(hash, expected, fields: builder.fields)
        }
        return try await put(builder, body, for: request, since: ticket, as: pending)
    }

    /// Stores the entry; `pending` if a fetch has left it to its caller.
    private func put(
        _ builder: EntryBuilder,
        _ body: GivenBody,
        for request: CacheRequest,
        since ticket: RemovalLedger.Ticket,
        as pending: PendingStore?
    ) async throws -> StoreOutcome {
        let key = builder.key
        let attempt =
            body.isGathered
            ? await put(builder, body.gathered, since: ticket)
            : try await put(builder, inFile: body, since: ticket)
        switch attempt {
        case .impossible(let reason): return await refuse(reason, key, request, pending)
        case .made(let outcome):
            services.recorder.count(outcome, request)
            if pending != nil, outcome == .refused(.removedMeanwhile),
                ticket.arrival?.isOutdated != true
            {
                // An entry that another fetch has stored since the removal may be older; one that
                // has overtaken this response is not.
                tiers.removeStored(key)
            }
            await tiers.settle(key.hash)
            return outcome
        }
    }

    /// An attempt to give the entry to the tiers.
    private enum Attempt {
        case made(StoreOutcome)
        /// There is no entry to give them.
        case impossible(StoreOutcome.Reason)
    }

    /// - Throws: `CacheError` if the response answers only its own request, or if no stored response
    ///   answers such a request.
    private func checkAnswersOthers(_ response: CacheResponse, _ request: CacheRequest) throws {
        if Mutant.storesAnyAnswer.isOn { return }
        guard request.isAnsweredByKey, request.method != .head else {
            throw CacheError(
                .requestInvalid,
                detail: "A response to this \(PlainText.excerpt(request.method.name)) cannot be "
                    + "stored: store one to a GET without content, or to a GET, POST or QUERY with "
                    + "a key of its own"
            )
        }
        let status = StatusFacts(response.status)
        guard status.isFinal, !status.isNeverStored else {
            throw CacheError(
                .requestInvalid,
                detail: "A response with the status \(response.status) answers one request only: "
                    + "store another one"
            )
        }
    }

    /// Stores the entry with a body that was gathered in memory.
    private func put(
        _ builder: EntryBuilder,
        _ pieces: [ByteChunk],
        since ticket: RemovalLedger.Ticket
    ) async -> Attempt {
        var builder = builder
        let count = pieces.byteCount
        builder.correctLength(to: count)
        let blueprint = builder.blueprint
        guard blueprint.isEncodable(bodyCount: count) else { return .impossible(.tooLarge) }
        let entry = await tiers.makeEntry(blueprint, gathered: pieces)
        return .made(tiers.store(entry, since: ticket))
    }

    /// Stores the entry with a body in a file of its own, which is read to its end.
    private func put(
        _ builder: EntryBuilder,
        inFile body: GivenBody,
        since ticket: RemovalLedger.Ticket
    ) async throws -> Attempt {
        var (builder, body) = (builder, body)
        let writer: BodyWriter
        do {
            let hash = builder.key.hash
            let opened = try await tiers.backing.openBody(hash, expectedCount: body.count)
            guard let opened else { return .impossible(.tooLarge) }
            writer = opened
        } catch { return .impossible(services.refusal(after: error)) }
        while true {
            let piece: ByteChunk?
            do { piece = try await body.next() } catch {
                await writer.abandon()
                throw error
            }
            do {
                if let piece {
                    try await writer.append(piece)
                    continue
                }
                let file = try await writer.finish()
                builder.correctLength(to: file.count)
                let blueprint = builder.blueprint
                guard blueprint.isEncodable(bodyCount: 0) else { return .impossible(.tooLarge) }
                let entry = tiers.makeEntry(blueprint, body: [])
                return .made(tiers.store(entry, body: file, since: ticket))
            } catch {
                await writer.abandon()
                return .impossible(services.refusal(after: error))
            }
        }
    }

    /// The builder of the entry, with the properties that the options name.
    private func makeBuilder(
        _ received: ReceivedResponse,
        under key: RequestKey,
        _ options: HTTPCache.ManualStoreOptions,
        as pending: PendingStore?
    ) -> EntryBuilder {
        var builder = EntryBuilder(received, lifetime: received.lifetime, under: key)
        builder.omit(lowercased: "cache-status")
        if let seconds = options.lifetime?.wholeSeconds {
            builder.setOwnLifetime(EntryBuilder.lifetimeSeconds(seconds))
        }
        builder.userInfo = options.userInfo
        builder.storageClass = pending?.storageClass ?? options.storageClass
        builder.place = options.place
        return builder
    }

    /// Gives a store its place in the order: it is newer than every response whose body is still
    /// arriving, and older than a response that is fetched while it waits.
    private func expect(
        _ response: CacheResponse,
        under key: RequestKey,
        _ ticket: inout RemovalLedger.Ticket
    ) -> ExpectedArrival {
        ticket.order = tiers.arrivals.nextOrder()
        let fields = response.fields.section
        return tiers.arrivals.expect(key.hash, order: ticket.order, fields: fields)
    }

    private func enter(
        _ vary: Vary,
        of key: RequestKey,
        _ request: CacheRequest,
        _ ticket: RemovalLedger.Ticket,
        _ arrival: ExpectedArrival?,
        for builder: EntryBuilder
    ) async -> Variance {
        let registry = VariantRegistry(
            services: services,
            key: key,
            fields: request.fields.section,
            ticket: ticket,
            arrival: arrival,
            storageClass: builder.storageClass,
            mayStayInMemory: builder.place == .memoryOnly
        )
        return await registry.enter(vary, flightKey: key.hash)
    }

    /// The tags that the options and the response's own fields give the entry; `nil` if the fields
    /// name too many.
    private func tags(
        of response: CacheResponse,
        _ options: HTTPCache.ManualStoreOptions
    ) throws -> TagList? {
        let named = services.configuration.caching.tags(in: response.fields.section)
        guard let named else { return nil }
        let texts = options.tags + TagList.tags(named, without: options.tags)
        guard let tags = TagList(texts) else {
            throw CacheError(
                .requestInvalid,
                detail: "The \(texts.count) tags need more room than an entry has; "
                    + "give fewer or shorter ones"
            )
        }
        return tags
    }

    /// The response as the rules of storing see it; HTTP's own directives do not prevent storing
    /// it.
    private func received(
        _ response: CacheResponse,
        for request: CacheRequest
    ) -> ReceivedResponse {
        let policy = services.configuration.policy.with { $0.respectsOriginDirectives = false }
        var rules = services.storingRules(policy)
        if rules.cookies == .refuse { rules.cookies = .store }
        let now = services.clock.nowSeconds
        return ReceivedResponse(
            status: response.status,
            fields: response.fields.section,
            to: RequestFacts(method: .get, fields: request.fields.section),
            rules: rules,
            requestSeconds: now,
            responseSeconds: now
        )
    }

    /// The part that a 206 carries; `nil` if `content` does not match the body, or names no size: a
    /// part of a whole of unknown size could serve no request.
    private static func held(_ content: ContentRange?, bodyCount: Int) -> PartialBody? {
        guard let content, let size = content.bodySize, content.range?.count == bodyCount else {
            return nil
        }
        var held = PartialBody(bodySize: size)
        return held.add(content) == .added ? held : nil
    }

    /// Stores nothing because of a rule of HTTP, and removes the older entry.
    private func refuse(
        _ rule: StoreRefusal,
        _ key: RequestKey,
        _ request: CacheRequest,
        _ pending: PendingStore?
    ) async -> StoreOutcome {
        let code = StoreRefusalReason(rule.code)
        return await refuse(.notAdmitted, key, request, pending, because: code)
    }

    /// Stores nothing, and removes the older entry.
    ///
    /// `rule` is the reason that is counted, if a rule of HTTP forbids to store.
    private func refuse(
        _ reason: StoreOutcome.Reason,
        _ key: RequestKey,
        _ request: CacheRequest,
        _ pending: PendingStore?,
        because rule: StoreRefusalReason? = nil
    ) async -> StoreOutcome {
        if let pending {
            await endReplaced(by: pending, for: request)
        } else {
            await tiers.remove(key)
        }
        services.recorder.refused(rule ?? StoreRefusalReason(reason), request)
        return .refused(reason)
    }

    /// Ends the stored response that a fetched one replaces, because no caller stores the fetched one.
    ///
    /// Other variants stay, and fetches under way still store their responses.
    func endReplaced(by pending: PendingStore, for request: CacheRequest) async {
        guard pending.endsReplaced, let key = try? services.key(of: request).key else { return }
        var ended = [pending.key]
        // By another set of selecting fields the request would find an older response.
        for other in await Lookup(services).candidates(for: key, request.fields.section)
        where other != pending.key {
            if await tiers.mayHold(other) { ended.append(other) }
        }
        // A newer response may have been stored during the look-up.
        guard pending.endsReplaced else { return }
        for key in ended { tiers.removeStored(key) }
        for key in ended { await tiers.settle(key.hash) }
    }
}
