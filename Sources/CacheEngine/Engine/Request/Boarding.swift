import HTTPCaching
import Platform

/// Joins flights on behalf of one request: decides which it may lead or follow, and waits.
struct Boarding {
    private let services: Services
    private let asked: RequestContext

    init(_ services: Services, _ asked: RequestContext) {
        self.services = services
        self.asked = asked
    }

    /// Whether only a response that the origin sends after this request may be used.
    private var demandsOrigin: Bool {
        services.configuration.caching.demandsOrigin(asked.facts, asked.policy)
    }

    // MARK: Boarding

    /// Joins the key's flight, or starts one, at this time of the monotonic clock.
    ///
    /// Not inlined, so that a frame that waits does not hold the checks.
    @inline(never)
    func board(_ context: FetchContext, nowNanoseconds: UInt64) -> FlightBoarding {
        let company = company(context, nowNanoseconds)
        if case .none = company { return .outcome(.goAlone(.mayNotShare)) }
        let desk = services.desk(context.key.hash)
        var mayLead = true
        if case .follow = company { mayLead = false }
        let boarding = desk.board(
            context.lookup.flightKey.hash,
            context,
            nowNanoseconds: nowNanoseconds,
            checks(context, mayLead: mayLead, demandsOrigin: demandsOrigin)
        )
        if case .leading(let flight, _) = boarding {
            FlightFetch.start(services, flight, desk, nowNanoseconds: nowNanoseconds)
        }
        return boarding
    }

    /// Starts a flight that no request waits for, unless one is under way.
    func refresh(_ context: FetchContext) {
        let desk = services.desk(context.key.hash)
        let now = services.clock.monotonicNanoseconds
        let flight = desk.refresh(
            context.lookup.flightKey.hash,
            context,
            nowNanoseconds: now,
            // The client's own directives concern its own response.
            checks(context, mayLead: true, demandsOrigin: Mutant.refreshesForReloads.isOn)
        )
        if let flight { FlightFetch.start(services, flight, desk, nowNanoseconds: now) }
    }

    private enum Company {
        /// The request may lead a flight that others join.
        case lead
        /// The request may join a flight, but its own response is not shared.
        case follow
        /// The request is never collapsed.
        case none
    }

    /// Which flights the request may use.
    ///
    /// Some requests are never collapsed:
    /// - by an option or by the hook;
    /// - without permission to read and to write the cache: a follower reads, an asker writes;
    /// - unsafe methods, content and write conditions: the origin must see each of these requests;
    /// - `no-store`, and in a shared cache `Authorization`, and `Cookie` if so configured: the
    ///   response is for one client.
    private func company(_ context: FetchContext, _ nowNanoseconds: UInt64) -> Company {
        let facts = context.facts
        guard isCollapsed(context.asked.request), context.policy.reads, context.policy.writes,
            context.asked.request.body == nil,
            !facts.flags.contains(.noStore), facts.flags.isDisjoint(with: .writeConditions)
        else { return .none }
        switch context.asked.request.method.kind {
        case .get, .head, .query: break
        default: return .none
        }
        if context.isPersonal(services.configuration) { return .none }
        // The responses to these requests are not whole, so no other request could use them.
        if context.asked.request.method.kind == .head || context.asksForPart { return .follow }
        // A caller that stores its response by itself is proposed no part.
        if facts.hasRange, context.asked.request.options.leavesStoring { return .follow }
        if context.confirmable == nil, facts.isConditional {
            return leadsWithoutConditions(context, nowNanoseconds) ? .lead : .follow
        }
        return .lead
    }

    /// Whether a conditional request leads a flight that fetches the whole response.
    private func leadsWithoutConditions(
        _ context: FetchContext,
        _ nowNanoseconds: UInt64
    ) -> Bool {
        // A reload that led would retire the flight whose response is on its way.
        guard context.leavesOutConditions(services.configuration.caching), !demandsOrigin else {
            return false
        }
        // A response that is not stored would be fetched again for each such request.
        return !services.desk(context.key.hash).isTooLarge(
            context.lookup.flightKey.hash,
            nowNanoseconds: nowNanoseconds
        )
    }

    private func isCollapsed(_ request: CacheRequest) -> Bool {
        guard request.options.collapsing == .shared else { return false }
        return services.configuration.hooks.collapsing?(request) != .alone
    }

    /// The checks that the desk makes for the request while no other request changes the key's
    /// flight.
    private struct Checks: BoardingChecks {
        let services: Services
        let context: FetchContext
        let demandsOrigin: Bool
        let mayLead: Bool

        var newestHead: UInt64 { services.tiers.arrivals.newestHead }
        var isPersonal: Bool { context.isPersonal(services.configuration) }
        var hasCookie: Bool { context.hasCookie(services.configuration) }

        /// A personal request founds a flight only to refresh, and no request waits for it.
        func mayJoin(_ flight: Flight) -> Bool {
            !flight.founder.isPersonal(services.configuration)
                || Mutant.joinsPersonalRefreshes.isOn
        }

        func isOutdated(_ flight: Flight) -> Bool {
            if demandsOrigin, !flight.isUnanswered { return true }
            let ledger = services.tiers.ledger
            return !ledger.isPresent(context.key.hash, since: flight.founder.ticket)
                || Mutant.retiresForAnyTag.isOn && isBehindRemovedTags(flight)
        }

        func isBehindRemovedTags(_ flight: Flight) -> Bool {
            services.tiers.ledger.hasRemovedTags(since: flight.founder.ticket)
        }

        func refreshesRemovedTag(_ flight: Flight) -> Bool {
            guard isBehindRemovedTags(flight) else { return false }
            let ticket = flight.founder.ticket
            guard let stored = context.lookup.stored else { return true }
            return !services.tiers.ledger.permits(stored.entry, since: ticket)
        }

        /// Judges the answer now, by the request's own directives, as a stored response is judged.
        ///
        /// Its body may arrive for longer than its response is fresh, or is the newest.
        func suits(_ answer: FlightAnswer, of flight: Flight) -> Bool {
            if answer.arrival?.isOutdated == true { return false }
            let ticket = flight.founder.ticket
            if services.mayCarryRemovedTag(answer, context.key.hash, since: ticket) { return false }
            guard let facts = answer.reusableFacts else { return true }
            return ReuseStep.isServedFresh(facts, to: context, services)
        }

        func hasNews() -> Bool {
            let lookup = context.lookup
            return isNew(lookup.flightKey) || lookup.isOfOlderSet && isNew(lookup.key)
        }

        private func isNew(_ key: RequestKey) -> Bool {
            // An entry that is only on disk does not count as new.
            guard let present = services.tiers.peek(key) else { return false }
            // A part does not help a fetch of the whole.
            let stored = StoredResponse(StoredEntry(present))
            let isPart = stored?.facts.flags.contains(.isPartial) == true
            let looked = context.lookup.stored?.entry.storage
            return present.storage !== looked && (!isPart || context.facts.hasRange)
        }
    }

    private func checks(
        _ context: FetchContext,
        mayLead: Bool,
        demandsOrigin: Bool
    ) -> Checks {
        Checks(
            services: services,
            context: context,
            demandsOrigin: demandsOrigin,
            mayLead: mayLead
        )
    }

    // MARK: Alone

    /// Starts a flight for this request only, at this time of the monotonic clock.
    @inline(never)
    func boardAlone(_ context: FetchContext, nowNanoseconds: UInt64) -> FlightBoarding {
        let flight = Flight(
            key: context.lookup.flightKey.hash,
            founder: context,
            isWanted: false,
            waitersMax: 1,
            attemptsMax: 1,
            startedNanoseconds: asked.startedNanoseconds
        )
        let place = flight.join(
            context,
            as: .asker,
            nowNanoseconds: asked.startedNanoseconds
        )
        FlightFetch.start(services, flight, nil, nowNanoseconds: nowNanoseconds)
        return .leading(flight, place)
    }

    /// Ends a request that left the flight of `key`: a response to it shows that the flight itself
    /// hangs.
    func leaveEscape(from key: KeyHash, _ outcome: FlightOutcome) {
        let desk = services.desk(key)
        desk.leaveEscape(key)
        guard case .answered(let answer, _) = outcome, answer.status < 500 else { return }
        let patience = services.configuration.collapsing.maximumWait.nanoseconds
        desk.isolateFlight(of: key, startedBefore: asked.startedNanoseconds &+ patience)
    }

    // MARK: Waiting

    /// Waits for the outcome of a flight that the request has boarded.
    nonisolated(nonsending) func outcome(
        of boarding: FlightBoarding,
        _ context: FetchContext
    ) async -> FlightOutcome {
        switch boarding {
        case .outcome(let outcome): return outcome
        case .aboard(let flight, let place):
            return await outcome(of: place, in: flight, context, isOwn: false)
        case .leading(let flight, let place):
            return await outcome(of: place, in: flight, context, isOwn: true)
        }
    }

    /// `isOwn` is true for the request that began the flight: it is not counted as a waiter.
    nonisolated(nonsending) private func outcome(
        of place: Flight.Place,
        in flight: Flight,
        _ context: FetchContext,
        isOwn: Bool
    ) async -> FlightOutcome {
        switch place {
        case .known(let outcome):
            // The request joined after the head, so the fetch did not count it.
            if case .answered(let answer, _) = outcome, case .shared(let body) = answer.content,
                !Mutant.forgetsLateReaders.isOn
            {
                body.awaitLateReader()
            }
            return outcome
        case .waiting(let waiter):
            let timer = timer(of: waiter, in: flight, context)
            let outcome = await flight.outcome(of: waiter)
            timer?.cancel()
            if !isOwn { services.recorder.waited(nanoseconds: waitedNanoseconds) }
            return outcome
        }
    }

    /// The moment at which `limit` has passed since the request began; `nil` without a limit.
    func moment(after limit: Duration?) -> UInt64? {
        limit.map { asked.startedNanoseconds &+ $0.nanoseconds }
    }

    /// The time since the request began.
    var waitedNanoseconds: UInt64 {
        services.clock.monotonicNanoseconds &- asked.startedNanoseconds
    }

    /// The task that removes the waiter when the request's own time is over.
    ///
    /// Content that is being sent extends the time: it ends between one and two times the timeout after
    /// the last piece.
    private func timer(
        of waiter: Flight.WaiterID,
        in flight: Flight,
        _ context: FetchContext
    ) -> Task<Void, Never>? {
        let options = context.asked.request.options
        guard let seconds = options.timeout?.seconds else { return nil }
        // Earlier waits have used part of the request's time.
        let waited = waitedNanoseconds
        let limit = UInt64(nanosecondsIn: seconds)
        let upload = Mutant.timesUploads.isOn ? nil : context.upload
        let unseen = UInt64(nanosecondsIn: upload?.secondsUnseen ?? 0)
        return services.supervisor.start(on: options.taskExecutor) { [clock = services.clock] in
            var nanoseconds = (limit > waited ? limit - waited : 0) + unseen
            var pieceCount = 0
            while true {
                guard (try? await clock.sleep(nanoseconds: nanoseconds)) != nil else { return }
                guard let upload, upload.pieceCount != pieceCount else { break }
                pieceCount = upload.pieceCount
                nanoseconds = limit
            }
            let error = CacheError(
                .deadlineExceeded,
                detail: "The request has no response after \(seconds) seconds"
            )
            flight.leave(waiter, with: .failed(error, isShared: false))
        }
    }
}
