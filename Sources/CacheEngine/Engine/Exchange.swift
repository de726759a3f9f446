import HTTPCaching

/// One request on its way through the cache: looks, decides, waits for the origin, answers.
///
/// An object: every frame of a request that waits holds a reference to it, and no copy.
final class Exchange: Sendable {
    let cache: HTTPCache
    let request: CacheRequest
    let policy: CachePolicy
    let facts: RequestFacts
    let startedNanoseconds: UInt64

    init(_ cache: HTTPCache, _ request: CacheRequest, policy: CachePolicy?) {
        self.cache = cache
        self.request = request
        self.policy = policy ?? request.options.policy ?? cache.configuration.policy
        facts = RequestFacts(method: request.method.kind, fields: request.fields.section)
        startedNanoseconds = cache.clock.monotonicNanoseconds
    }

    func respond() async throws -> CacheResponse {
        guard cache.supervisor.isOpen else { throw HTTPCache.shutDownError }
        let (key, isStorable) = try cache.key(of: request)
        guard !HTTPCache.keysBeingLoaded.contains(key.hash) else {
            throw CacheError(.loadRecursed, detail: "A fetch asked for what it is fetching")
        }
        let response: CacheResponse
        if isStorable, isCacheable {
            response = try await answer(key)
        } else {
            response = try await pass(key)
        }
        cache.recorder.answered(response.info.source, spread: key.hash.placement)
        return response
    }

    /// Whether the cache has a say in this kind of request.
    private var isCacheable: Bool {
        (policy.reads || policy.writes) && request.isAnsweredByKey
    }

    // MARK: Through the store

    private func answer(_ key: RequestKey) async throws -> CacheResponse {
        for _ in 0..<cache.configuration.flights.lookUpsMax {
            // Before the look-up: what is removed after it must not be brought back.
            let ticket = cache.tiers.ledger.ticket()
            let selection = policy.reads ? await cache.select(key, request) : .nothing(key)
            if let response = try await reuse(selection, key, ticket) { return response }
            guard policy.onMiss == .load else { throw Self.notCached }
            let load = load(key, isUnread(selection) ? .nothing(key) : selection, ticket)
            if let response = try await finish(await fly(load), load) {
                if isWholeWanted(after: response, selection) {
                    await refresh(selection, key, ticket)
                }
                return response
            }
        }
        let load = load(key, .nothing(key), cache.tiers.ledger.ticket())
        return try await alone(load, because: .lookedTooOften)
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

    /// Whether a part was fetched and the whole is to be fetched behind it.
    private func isWholeWanted(after response: CacheResponse, _ selection: Selection) -> Bool {
        guard facts.hasRange, response.status == 206, response.info.source == .origin,
            response.info.isStored, policy.writes,
            cache.configuration.storing.rangeMiss == .wholeBehind
        else { return false }
        return selection.stored?.facts.flags.contains(.isPartial) ?? true
    }

    private static let notCached = CacheError(
        .notCached,
        detail: "Nothing is stored, and the policy allows no load"
    )

    private func load(
        _ key: RequestKey,
        _ selection: Selection,
        _ ticket: RemovalLedger.Ticket,
        purpose: Load.Purpose = .answer
    ) -> Load {
        Load(
            request: request,
            facts: facts,
            policy: policy,
            key: key,
            selection: selection,
            ticket: ticket,
            purpose: purpose
        )
    }

    /// The answer from the store, where that is allowed; starts refreshes behind it.
    private func reuse(
        _ selection: Selection,
        _ key: RequestKey,
        _ ticket: RemovalLedger.Ticket
    ) async throws -> CacheResponse? {
        let preferences = cache.preferences(policy)
        guard let stored = selection.stored else {
            let decision = ReuseDecision.decideMiss(request: facts, preferences: preferences)
            return decision == .gatewayTimeout ? gatewayTimeout() : nil
        }
        let decision = ReuseDecision.decide(
            stored: cache.currentFacts(of: stored),
            request: facts,
            nowSeconds: cache.clock.nowSeconds,
            preferences: preferences
        )
        switch decision {
        case .serve(let age):
            let response = serve(stored, .fresh, selection.tier, age)
            if response != nil, cache.isRefreshDue(stored, ageSeconds: age) {
                await refresh(selection, key, ticket)
            }
            return response
        case .serveStale(let age):
            if policy.freshness == .acceptAnyAgeThenRefresh {
                await refresh(selection, key, ticket)
            }
            return serve(stored, .stale, selection.tier, age)
        case .serveStaleThenRevalidate(let age):
            await refresh(selection, key, ticket)
            return serve(stored, .stale, selection.tier, age)
        case .gatewayTimeout: return gatewayTimeout()
        case .revalidate, .fetch: return nil
        }
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
    private func refresh(
        _ selection: Selection,
        _ key: RequestKey,
        _ ticket: RemovalLedger.Ticket
    ) async {
        guard policy.onMiss == .load, policy.writes, !facts.onlyIfCached else { return }
        if let content = request.body, content.availableChunk == nil { return }
        let load = plainLoad(key, selection, ticket)
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
        _ key: RequestKey,
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
        return Load(
            request: request,
            facts: RequestFacts(method: request.method.kind, fields: request.fields.section),
            policy: policy,
            key: key,
            selection: selection,
            ticket: ticket,
            purpose: .refresh
        )
    }

    // MARK: Flying

    private enum Company {
        /// The request may lead a flight that others join.
        case lead
        /// It may join one, but its own answer is not for others.
        case follow
        case none
    }

    private func company(_ load: Load) -> Company {
        guard isCollapsed, policy.reads, policy.writes, request.body == nil,
            facts.flags.isDisjoint(with: [.noStore, .hasIfMatch, .hasIfUnmodifiedSince]),
            request.method == .get || request.method == .head || request.method == .query
        else { return .none }
        let isShared = cache.configuration.mode == .shared
        if isShared, facts.hasAuthorization { return .none }
        if isShared, facts.flags.contains(.hasCookie),
            cache.configuration.storing.cookieRequests == .alone
        {
            return .none
        }
        if request.method == .head || facts.hasRange { return .follow }
        if load.stored == nil, facts.isConditional { return .follow }
        return .lead
    }

    private var isCollapsed: Bool {
        guard request.options.collapsing == .shared else { return false }
        return cache.configuration.hooks.collapsing?(request) != .alone
    }

    /// What the desk has to ask about this request while it has the key to itself.
    private func circumstances(
        _ load: Load,
        _ desk: HTTPFlightDesk
    ) -> HTTPFlightDesk.Circumstances {
        let tiers = cache.tiers
        let looked = load.selection.stored?.entry.storage
        let isDemanding = demandsNewerThanItself
        return HTTPFlightDesk.Circumstances(
            isOutdated: { flight in
                if isDemanding, !flight.isUnanswered { return true }
                return !tiers.ledger.isCurrent(load.key.hash, since: flight.founder.ticket)
            },
            hasNews: {
                // A disk entry that memory has not taken up is no news.
                guard let present = tiers.peek(load.selection.key) else { return false }
                // Nor is a part, to a fetch of the whole.
                let stored = StoredResponse(StoredEntry(present))
                let isPart = stored?.facts.flags.contains(.isPartial) == true
                return present.storage !== looked && (!isPart || load.facts.hasRange)
            },
            lead: { [cache] flight in cache.startLeading(flight, load, desk: desk) }
        )
    }

    /// Whether only an answer that the origin gives after this request will do.
    private var demandsNewerThanItself: Bool {
        if policy.freshness == .alwaysValidate { return true }
        guard cache.configuration.storing.requestDirectives == .honour else { return false }
        return facts.flags.contains(.noCache) || facts.maxAgeSeconds == 0
    }

    private func fly(_ load: Load) async -> FlightOutcome<FlightAnswer> {
        let company = company(load)
        if case .none = company { return .goAlone(.requested) }
        let desk = cache.desk(load.key.hash)
        var circumstances = circumstances(load, desk)
        if case .follow = company { circumstances.lead = nil }
        let boarding = await desk.board(
            load.selection.key.hash,
            load,
            nowNanoseconds: cache.clock.monotonicNanoseconds,
            circumstances
        )
        switch boarding {
        case .outcome(let outcome): return outcome
        case .aboard(_, .known(let outcome)): return outcome
        case .aboard(let flight, .waiting(let waiter)):
            return await wait(in: flight, as: waiter)
        }
    }

    private func wait(
        in flight: HTTPFlight,
        as waiter: HTTPFlight.WaiterID
    ) async -> FlightOutcome<FlightAnswer> {
        var timer: Task<Void, Never>?
        if let seconds = request.options.timeoutSeconds {
            // What earlier waits took of the request's time is gone.
            let waited = cache.clock.monotonicNanoseconds &- startedNanoseconds
            let limit = HTTPCache.nanoseconds(seconds)
            let nanoseconds = limit > waited ? limit - waited : 0
            timer = cache.supervisor.start { [clock = cache.clock] in
                guard (try? await clock.sleep(nanoseconds: nanoseconds)) != nil else { return }
                let error = CacheError(.deadlineExceeded, detail: "No answer within \(seconds) s")
                flight.leave(waiter, with: .failed(error, isShared: false))
            }
        }
        let outcome = await flight.outcome(of: waiter)
        timer?.cancel()
        if case .answered(_, isLeader: true) = outcome { return outcome }
        let now = cache.clock.monotonicNanoseconds
        cache.recorder.waited(nanoseconds: now &- startedNanoseconds)
        return outcome
    }

    /// Turns what the flight came to into this request's answer; nil to look again.
    private func finish(
        _ outcome: FlightOutcome<FlightAnswer>,
        _ load: Load
    ) async throws -> CacheResponse? {
        switch outcome {
        case .lookAgain:
            try Task.checkCancellation()
            return nil
        case .goAlone(let reason): return try await alone(load, because: reason)
        case .failed(let error, let isShared):
            return try standIn(for: isShared ? Self.shared(error) : error, load)
        case .answered(let answer, let isLeader):
            if !isLeader, isForAnotherVariant(answer, load) { return nil }
            if let response = present(answer, load, isLeader: isLeader) { return response }
            // The body broke off, or is too far ahead to be joined.
            return try await alone(load, because: .unshareable)
        }
    }

    private static func shared(_ error: any Error) -> any Error {
        guard var error = error as? CacheError else { return error }
        error.isShared = true
        return error
    }

    /// Whether the answer varies, and this request selects another variant.
    private func isForAnotherVariant(_ answer: FlightAnswer, _ load: Load) -> Bool {
        guard let variance = answer.variance else { return false }
        let mine = cache.variantKey(load.key, variance.index, variance.vary, request)
        return mine != variance.key
    }

    // MARK: Alone

    /// Asks the origin for this request only.
    private func alone(_ load: Load, because reason: FlightEscape) async throws -> CacheResponse {
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
        switch outcome {
        case .answered(let answer, _):
            if let response = present(answer, load, isLeader: true) { return response }
            throw HTTPCache.misbehaved("The stored part cannot answer this request")
        case .failed(let error, _): return try standIn(for: error, load)
        case .goAlone, .lookAgain: throw HTTPCache.shutDownError
        }
    }

    private func askAlone(_ load: Load) async -> FlightOutcome<FlightAnswer> {
        let flight = HTTPFlight(
            key: load.selection.key.hash,
            founder: load,
            machine: FlightStateMachine(isWanted: false, waitersMax: 1, attemptsMax: 1),
            startedNanoseconds: startedNanoseconds
        )
        let place = flight.join(load, as: .leader, nowNanoseconds: startedNanoseconds)
        guard case .waiting(let waiter) = place else {
            preconditionFailure("A new flight takes its first passenger")
        }
        flight.attach(cache.startLeading(flight, load, desk: nil))
        return await wait(in: flight, as: waiter)
    }

    /// A request the cache has no say in: to the origin and back, and what it changes is forgotten.
    private func pass(_ key: RequestKey) async throws -> CacheResponse {
        guard policy.onMiss == .load else { throw Self.notCached }
        if facts.onlyIfCached, request.method.kind.isSafe,
            cache.configuration.storing.requestDirectives == .honour
        {
            return gatewayTimeout()
        }
        let load = Load(
            request: request,
            facts: facts,
            policy: policy.with {
                $0.reads = false
                $0.writes = false
            },
            key: key,
            selection: .nothing(key, isCacheable ? .miss : .method),
            ticket: cache.tiers.ledger.ticket(),
            purpose: .answer
        )
        switch await askAlone(load) {
        case .answered(let answer, _):
            await invalidate(after: answer)
            guard let response = present(answer, load, isLeader: true) else {
                throw HTTPCache.shutDownError
            }
            return response
        case .failed(let error, _): throw error
        case .goAlone, .lookAgain: throw HTTPCache.shutDownError
        }
    }

    /// RFC 9111 §4.4: what an unsafe method may have changed is not used again.
    private func invalidate(after answer: FlightAnswer) async {
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
