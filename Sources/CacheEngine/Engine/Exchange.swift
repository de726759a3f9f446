import HTTPCaching

/// One request on its way through the cache: looks, decides, waits for the origin, answers.
struct Exchange: Sendable {
    let cache: HTTPCache
    let demand: Demand
    /// Whether the request is one that the cache has a say in, and of a scheme that it stores.
    private let usesStore: Bool
    let startedNanoseconds: UInt64

    /// - Throws: `CacheError` for a request that is none, or comes when no request may.
    init(_ cache: HTTPCache, _ request: CacheRequest, policy: CachePolicy?) throws {
        guard cache.supervisor.isOpen else { throw HTTPCache.shutDownError }
        let (key, isStorable) = try cache.key(of: request)
        guard !HTTPCache.keysBeingLoaded.contains(key.hash) else {
            throw CacheError(.loadRecursed, detail: "A fetch asked for what it is fetching")
        }
        self.cache = cache
        let policy = policy ?? request.options.policy ?? cache.configuration.policy
        let demand = Demand(request, policy, key)
        self.demand = demand
        usesStore = isStorable && demand.isCacheable
        startedNanoseconds = cache.clock.monotonicNanoseconds
    }

    var request: CacheRequest { demand.request }
    var policy: CachePolicy { demand.policy }
    var facts: RequestFacts { demand.facts }
    var key: RequestKey { demand.key }

    /// Puts the answer into `response`; it is there when this returns.
    ///
    /// Ten thousand may wait for one answer, so the frames that wait are small: what needs room is done
    /// in calls that are over by then and never inlined, and an answer is made where it belongs.
    nonisolated(nonsending) func answer(with response: inout CacheResponse?) async throws {
        if usesStore {
            try await answerThroughStore(&response)
        } else {
            try await pass(&response)
        }
    }

    /// Puts the answer where it belongs, and counts it.
    private func put(_ answer: CacheResponse, into response: inout CacheResponse?) {
        cache.recorder.answered(answer.info.source)
        response = answer
    }

    // MARK: Through the store

    nonisolated(nonsending) private func answerThroughStore(
        _ response: inout CacheResponse?
    ) async throws {
        for _ in 0..<cache.configuration.flights.lookUpsMax {
            switch try await approach(&response) {
            case .answered: return
            case .flying(let load, let boarding):
                let outcome = await outcome(of: boarding)
                switch try finish(outcome, load, &response) {
                case .lookAgain: continue
                case .answered: break
                case .goAlone(let reason): try await alone(load, because: reason, &response)
                }
                if wantsWhole(behind: &response, load) { await fetchWhole(behind: load) }
                return
            }
        }
        let load = Load(demand, .nothing(key), cache.tiers.ledger.ticket())
        try await alone(load, because: .lookedTooOften, &response)
    }

    /// How far a request comes without waiting for the origin.
    private enum Approach {
        case answered
        case flying(Load, HTTPFlightDesk.Boarding)
    }

    /// Looks, and boards a flight where what is stored will not do.
    @inline(never)
    nonisolated(nonsending) private func approach(
        _ response: inout CacheResponse?
    ) async throws -> Approach {
        // Before the look-up: what is removed after it must not be brought back.
        let ticket = cache.tiers.ledger.ticket()
        // A look-up that may wait has large frames, and whoever waits for the origin would keep them.
        let isLookedUp = policy.reads && !cache.tiers.noteCertainMiss(key)
        let selection =
            isLookedUp ? await cache.select(key, request.fields.section) : .nothing(key)
        let (isAnswered, isRefreshed) = reuse(selection, &response)
        if isRefreshed { await refresh(selection, ticket) }
        if isAnswered { return .answered }
        guard policy.onMiss == .load else { throw Self.notCached }
        let load = load(selection, ticket)
        return .flying(load, await board(load))
    }

    @inline(never)
    private func load(_ found: Selection, _ ticket: RemovalLedger.Ticket) -> Load {
        Load(demand, isUnread(found) ? .nothing(key) : found, found: found, ticket)
    }

    /// Whether the client wants no part of what is stored, not even as the base of a condition.
    private func isUnread(_ selection: Selection) -> Bool {
        guard let stored = selection.stored else { return false }
        let decision = ReuseDecision.decide(
            stored: stored.facts,
            request: facts,
            nowSeconds: cache.clock.nowSeconds,
            preferences: cache.preferences(policy)
        )
        return decision == .fetch
    }

    /// Whether a part was answered that was fetched for it, and the whole may be fetched behind it.
    ///
    /// The response is lent, as a copy would lie in the frame of whoever waits.
    @inline(never)
    private func wantsWhole(behind response: inout CacheResponse?, _ load: Load) -> Bool {
        guard facts.hasRange, let response, response.status == 206, response.info.source == .origin,
            response.info.isStored, policy.writes,
            cache.configuration.storing.rangeMiss == .wholeBehind
        else { return false }
        return load.found.stored?.facts.flags.contains(.isPartial) ?? true
    }

    @inline(never)
    nonisolated(nonsending) private func fetchWhole(behind load: Load) async {
        await refresh(load.found, load.ticket)
    }

    private static let notCached = CacheError(
        .notCached,
        detail: "Nothing is stored, and the policy allows no load"
    )

    /// Answers from the store, where that is allowed; and whether to refresh behind it.
    @inline(never)
    private func reuse(
        _ selection: Selection,
        _ response: inout CacheResponse?
    ) -> (isAnswered: Bool, isRefreshed: Bool) {
        let preferences = cache.preferences(policy)
        guard let stored = selection.stored else {
            let decision = ReuseDecision.decideMiss(request: facts, preferences: preferences)
            guard decision == .gatewayTimeout else { return (false, false) }
            put(gatewayTimeout(), into: &response)
            return (true, false)
        }
        let decision = ReuseDecision.decide(
            stored: cache.currentFacts(of: stored),
            request: facts,
            nowSeconds: cache.clock.nowSeconds,
            preferences: preferences
        )
        let answer: CacheResponse?
        let isRefreshed: Bool
        switch decision {
        case .serve(let age):
            answer = serve(stored, .fresh, selection.tier, age)
            isRefreshed = answer != nil && cache.isRefreshDue(stored, ageSeconds: age)
        case .serveStale(let age):
            answer = serve(stored, .stale, selection.tier, age)
            isRefreshed = policy.freshness == .acceptAnyAgeThenRefresh
        case .serveStaleThenRevalidate(let age):
            answer = serve(stored, .stale, selection.tier, age)
            isRefreshed = true
        case .gatewayTimeout:
            answer = gatewayTimeout()
            isRefreshed = false
        case .revalidate, .fetch: return (false, false)
        }
        guard let answer else { return (false, isRefreshed) }
        put(answer, into: &response)
        return (true, isRefreshed)
    }

    private func serve(
        _ stored: StoredResponse,
        _ source: CacheInfo.Source,
        _ tier: CacheInfo.Tier?,
        _ age: Int
    ) -> CacheResponse? {
        var info = CacheInfo(source: source, tier: tier)
        info.ageSeconds = age
        return cache.serve(stored, to: request, facts, as: info)
    }

    /// RFC 9111 §5.2.1.7: the client wants no request to be made, and nothing stored will do.
    private func gatewayTimeout() -> CacheResponse {
        CacheResponse(
            status: 504,
            fields: [
                "Content-Length": "0",
                "Cache-Status": "\(cache.configuration.name); detail=only-if-cached",
            ],
            info: CacheInfo(source: .generated)
        )
    }

    /// Brings the stored response up to date without anyone waiting for it, where that is allowed and
    /// the question can be asked again.
    nonisolated(nonsending) private func refresh(
        _ selection: Selection,
        _ ticket: RemovalLedger.Ticket
    ) async {
        guard policy.onMiss == .load, policy.writes, !facts.onlyIfCached else { return }
        if let content = request.body, content.availableChunk == nil { return }
        let load = plainLoad(selection, ticket)
        let desk = cache.desk(key.hash)
        _ = await desk.refresh(
            selection.key.hash,
            load,
            nowNanoseconds: cache.clock.monotonicNanoseconds,
            circumstances(load, desk)
        )
    }

    /// A load of the whole resource, without this client's own conditions.
    private func plainLoad(
        _ selection: Selection,
        _ ticket: RemovalLedger.Ticket
    ) -> Load {
        var request = request
        if request.options.key == nil {
            request.method = .get
            request.body = nil
        }
        request.options.onInformational = nil
        for name in ["Range", "If-Range", "If-None-Match", "If-Modified-Since", "If-Match"] {
            request.fields.remove(name)
        }
        return Load(Demand(request, policy, key), selection, ticket, purpose: .refresh)
    }

    // MARK: Landing

    /// What the flight came to, for this request.
    private enum Landing {
        case answered, lookAgain
        case goAlone(FlightEscape)
    }

    /// Turns what the flight came to into this request's answer.
    @inline(never)
    private func finish(
        _ outcome: FlightOutcome<FlightAnswer>,
        _ load: Load,
        _ response: inout CacheResponse?
    ) throws -> Landing {
        switch outcome {
        case .lookAgain:
            try Task.checkCancellation()
            return .lookAgain
        case .goAlone(let reason): return .goAlone(reason)
        case .failed(let error, let isShared):
            put(try standIn(for: isShared ? Self.shared(error) : error, load), into: &response)
            return .answered
        case .answered(let answer, let isLeader):
            if !isLeader, isForAnotherVariant(answer, load) { return .lookAgain }
            guard let answer = present(answer, load, isLeader: isLeader) else {
                // The body broke off, or is too far ahead to be joined.
                return .goAlone(.unshareable)
            }
            put(answer, into: &response)
            return .answered
        }
    }

    /// The error as those see it whose own request did not meet it.
    private static func shared(_ error: any Error) -> any Error {
        guard var error = error as? CacheError else { return error }
        error.isShared = true
        return error
    }

    /// Whether the answer varies, and this request selects another variant.
    private func isForAnotherVariant(_ answer: FlightAnswer, _ load: Load) -> Bool {
        guard let variance = answer.variance else { return false }
        let mine = cache.variantKey(
            load.key,
            variance.index,
            variance.vary,
            request.fields.section
        )
        return mine != variance.key
    }

    // MARK: Alone

    /// Asks the origin for this request only.
    @inline(never)
    nonisolated(nonsending) private func alone(
        _ load: Load,
        because reason: FlightEscape,
        _ response: inout CacheResponse?
    ) async throws {
        var load = load
        if reason != .requested {
            cache.recorder.escaped(reason)
            // Somebody else's answer is on its way into the store.
            if reason == .waitedTooLong { load = load.with(policy.with { $0.writes = false }) }
        }
        let outcome = await askAlone(load)
        if reason == .waitedTooLong {
            await cache.desk(load.key.hash).leaveEscape(load.selection.key.hash)
        }
        switch try finish(outcome, load, &response) {
        case .answered: return
        case .goAlone: throw HTTPCache.misbehaved("The stored part cannot answer this request")
        case .lookAgain: throw HTTPCache.shutDownError
        }
    }

    nonisolated(nonsending) private func askAlone(_ load: Load) async -> FlightOutcome<FlightAnswer>
    {
        let flight = HTTPFlight(
            key: load.selection.key.hash,
            founder: load,
            machine: FlightStateMachine(isWanted: false, waitersMax: 1, attemptsMax: 1),
            startedNanoseconds: startedNanoseconds
        )
        let place = flight.join(load, as: .leader, nowNanoseconds: startedNanoseconds)
        flight.attach(cache.startLeading(flight, load, desk: nil))
        return await outcome(of: .aboard(flight, place))
    }

    /// A request the cache has no say in: to the origin and back, and what it changes is forgotten.
    @inline(never)
    nonisolated(nonsending) private func pass(
        _ response: inout CacheResponse?
    ) async throws {
        guard let load = try loadPassing(&response) else { return }
        let outcome = await askAlone(load)
        if case .answered(let answer, _) = outcome { invalidate(after: answer) }
        guard case .answered = try finish(outcome, load, &response) else {
            throw HTTPCache.shutDownError
        }
    }

    /// What to ask the origin for a request that is not the cache's; nil where it was answered.
    @inline(never)
    private func loadPassing(_ response: inout CacheResponse?) throws -> Load? {
        guard policy.onMiss == .load else { throw Self.notCached }
        if facts.onlyIfCached, request.method.kind.isSafe,
            cache.configuration.storing.requestDirectives == .honour
        {
            put(gatewayTimeout(), into: &response)
            return nil
        }
        let policy = policy.with {
            $0.reads = false
            $0.writes = false
        }
        return Load(
            Demand(request, policy, key),
            .nothing(key, demand.isCacheable ? .miss : .method),
            cache.tiers.ledger.ticket()
        )
    }

    /// RFC 9111 §4.4: what an unsafe method may have changed is not used again.
    @inline(never)
    private func invalidate(after answer: FlightAnswer) {
        guard policy.writes else { return }
        let targets = Invalidation.targets(
            method: request.method.kind,
            status: answer.status,
            requestURL: request.urlWithoutFragment,
            responseFields: answer.fields
        )
        for target in targets {
            var other = request
            other.url = target
            other.options.key = nil
            guard let key = try? cache.key(of: other).key else { continue }
            if cache.tiers.remove(key) { cache.recorder.counters.add(.invalidations) }
        }
    }
}
