import HTTPCaching

/// One request on its way through the cache: looks, decides, waits for the origin, answers.
struct Exchange: Sendable {
    let cache: HTTPCache
    let demand: Demand
    private let isStorable: Bool
    private let startedNanoseconds: UInt64

    /// - Throws: `CacheError` for a request that is none, or comes when no request may.
    init(_ cache: HTTPCache, _ request: CacheRequest, policy: CachePolicy?) throws {
        guard cache.supervisor.isOpen else { throw HTTPCache.shutDownError }
        let (key, isStorable) = try cache.key(of: request)
        guard !HTTPCache.keysBeingLoaded.contains(key.hash) else {
            throw CacheError(.loadRecursed, detail: "A fetch asked for what it is fetching")
        }
        self.cache = cache
        self.isStorable = isStorable
        let policy = policy ?? request.options.policy ?? cache.configuration.policy
        demand = Demand(request, policy, key)
        startedNanoseconds = cache.clock.monotonicNanoseconds
    }

    var request: CacheRequest { demand.request }
    var policy: CachePolicy { demand.policy }
    var facts: RequestFacts { demand.facts }
    private var key: RequestKey { demand.key }

    /// Ten thousand may wait for one answer, so the frames that wait are small: what needs room is done
    /// in calls that are over by then and never inlined, and an answer is handed on in one word.
    func respond() async throws -> CacheResponse {
        let answer = isStorable && isCacheable ? try await answer() : try await pass()
        return noted(answer)
    }

    private final class Answer: Sendable {
        let response: CacheResponse

        init(_ response: CacheResponse) { self.response = response }
    }

    @inline(never)
    private func noted(_ answer: Answer) -> CacheResponse {
        cache.recorder.answered(answer.response.info.source)
        return answer.response
    }

    /// Whether the cache has a say in this kind of request.
    private var isCacheable: Bool {
        (policy.reads || policy.writes) && request.isAnsweredByKey
    }

    // MARK: Through the store

    private func answer() async throws -> Answer {
        for _ in 0..<cache.configuration.flights.lookUpsMax {
            switch try await approach() {
            case .answered(let answer): return answer
            case .flying(let load, let selection, let boarding):
                let outcome = await outcome(of: boarding)
                guard let answer = try await finish(outcome, load) else { continue }
                if answer.response.status == 206 {
                    await fetchWhole(behind: answer, selection, load.ticket)
                }
                return answer
            }
        }
        let load = Load(demand, .nothing(key), cache.tiers.ledger.ticket())
        return try await alone(load, because: .lookedTooOften)
    }

    /// How far a request comes without waiting for the origin.
    private enum Approach {
        case answered(Answer)
        /// Besides the load, what was looked up before it: a client may want no part of that.
        case flying(Load, Selection, HTTPFlightDesk.Boarding)
    }

    /// Looks, and boards a flight where what is stored will not do.
    @inline(never)
    private func approach() async throws -> Approach {
        // Before the look-up: what is removed after it must not be brought back.
        let ticket = cache.tiers.ledger.ticket()
        let selection = policy.reads ? await cache.select(key, request) : .nothing(key)
        let (response, isRefreshed) = reuse(selection)
        if isRefreshed { await refresh(selection, ticket) }
        if let response { return .answered(Answer(response)) }
        guard policy.onMiss == .load else { throw Self.notCached }
        let load = Load(demand, isUnread(selection) ? .nothing(key) : selection, ticket)
        return .flying(load, selection, await board(load))
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

    /// A part was answered: where it was fetched for that, the whole may be fetched behind it.
    @inline(never)
    private func fetchWhole(
        behind answer: Answer,
        _ selection: Selection,
        _ ticket: RemovalLedger.Ticket
    ) async {
        let info = answer.response.info
        guard facts.hasRange, info.source == .origin, info.isStored, policy.writes,
            cache.configuration.storing.rangeMiss == .wholeBehind,
            selection.stored?.facts.flags.contains(.isPartial) ?? true
        else { return }
        await refresh(selection, ticket)
    }

    private static let notCached = CacheError(
        .notCached,
        detail: "Nothing is stored, and the policy allows no load"
    )

    /// The answer from the store, where that is allowed, and whether to refresh behind it.
    private func reuse(_ selection: Selection) -> (CacheResponse?, isRefreshed: Bool) {
        let preferences = cache.preferences(policy)
        guard let stored = selection.stored else {
            let decision = ReuseDecision.decideMiss(request: facts, preferences: preferences)
            return (decision == .gatewayTimeout ? gatewayTimeout() : nil, false)
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
            return (response, response != nil && cache.isRefreshDue(stored, ageSeconds: age))
        case .serveStale(let age):
            let isRefreshed = policy.freshness == .acceptAnyAgeThenRefresh
            return (serve(stored, .stale, selection.tier, age), isRefreshed)
        case .serveStaleThenRevalidate(let age):
            return (serve(stored, .stale, selection.tier, age), true)
        case .gatewayTimeout: return (gatewayTimeout(), false)
        case .revalidate, .fetch: return (nil, false)
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
            !facts.flags.contains(.noStore), facts.flags.isDisjoint(with: .writeConditions),
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

    private func board(_ load: Load) async -> HTTPFlightDesk.Boarding {
        let company = company(load)
        if case .none = company { return .outcome(.goAlone(.requested)) }
        let desk = cache.desk(load.key.hash)
        var circumstances = circumstances(load, desk)
        if case .follow = company { circumstances.lead = nil }
        return await desk.board(
            load.selection.key.hash,
            load,
            nowNanoseconds: cache.clock.monotonicNanoseconds,
            circumstances
        )
    }

    /// Waits for what the flight comes to.
    private func outcome(
        of boarding: HTTPFlightDesk.Boarding
    ) async -> FlightOutcome<FlightAnswer> {
        switch boarding {
        case .outcome(let outcome): return outcome
        case .aboard(_, .known(let outcome)): return outcome
        case .aboard(let flight, .waiting(let waiter)):
            let timer = timer(of: waiter, in: flight)
            let outcome = await flight.outcome(of: waiter)
            timer?.cancel()
            if case .answered(_, isLeader: true) = outcome { return outcome }
            let now = cache.clock.monotonicNanoseconds
            cache.recorder.waited(nanoseconds: now &- startedNanoseconds)
            return outcome
        }
    }

    /// What takes the waiter out when the request's own time is over; nil for a request without.
    private func timer(
        of waiter: HTTPFlight.WaiterID,
        in flight: HTTPFlight
    ) -> Task<Void, Never>? {
        guard let seconds = request.options.timeoutSeconds else { return nil }
        // What earlier waits took of the request's time is gone.
        let waited = cache.clock.monotonicNanoseconds &- startedNanoseconds
        let limit = HTTPCache.nanoseconds(seconds)
        let nanoseconds = limit > waited ? limit - waited : 0
        return cache.supervisor.start { [clock = cache.clock] in
            guard (try? await clock.sleep(nanoseconds: nanoseconds)) != nil else { return }
            let error = CacheError(.deadlineExceeded, detail: "No answer within \(seconds) s")
            flight.leave(waiter, with: .failed(error, isShared: false))
        }
    }

    /// Turns what the flight came to into this request's answer; nil to look again.
    @inline(never)
    private func finish(
        _ outcome: FlightOutcome<FlightAnswer>,
        _ load: Load
    ) async throws -> Answer? {
        switch outcome {
        case .lookAgain:
            try Task.checkCancellation()
            return nil
        case .goAlone(let reason): return try await alone(load, because: reason)
        case .failed(let error, let isShared):
            return Answer(try standIn(for: isShared ? Self.shared(error) : error, load))
        case .answered(let answer, let isLeader):
            if !isLeader, isForAnotherVariant(answer, load) { return nil }
            if let answer = present(answer, load, isLeader) { return answer }
            // The body broke off, or is too far ahead to be joined.
            return try await alone(load, because: .unshareable)
        }
    }

    @inline(never)
    private func present(_ answer: FlightAnswer, _ load: Load, _ isLeader: Bool) -> Answer? {
        present(answer, load, isLeader: isLeader).map(Answer.init)
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
        let mine = cache.variantKey(load.key, variance.index, variance.vary, request)
        return mine != variance.key
    }

    // MARK: Alone

    /// Asks the origin for this request only.
    @inline(never)
    private func alone(_ load: Load, because reason: FlightEscape) async throws -> Answer {
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
            if let answer = present(answer, load, true) { return answer }
            throw HTTPCache.misbehaved("The stored part cannot answer this request")
        case .failed(let error, _): return Answer(try standIn(for: error, load))
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
        flight.attach(cache.startLeading(flight, load, desk: nil))
        return await outcome(of: .aboard(flight, place))
    }

    /// A request the cache has no say in: to the origin and back, and what it changes is forgotten.
    @inline(never)
    private func pass() async throws -> Answer {
        guard policy.onMiss == .load else { throw Self.notCached }
        if facts.onlyIfCached, request.method.kind.isSafe,
            cache.configuration.storing.requestDirectives == .honour
        {
            return Answer(gatewayTimeout())
        }
        let policy = policy.with {
            $0.reads = false
            $0.writes = false
        }
        let load = Load(
            Demand(request, policy, key),
            .nothing(key, isCacheable ? .miss : .method),
            cache.tiers.ledger.ticket()
        )
        switch await askAlone(load) {
        case .answered(let answer, _):
            await invalidate(after: answer)
            guard let answer = present(answer, load, true) else { throw HTTPCache.shutDownError }
            return answer
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
