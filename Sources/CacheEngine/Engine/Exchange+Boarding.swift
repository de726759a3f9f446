import HTTPCaching

/// Aboard a flight: who may lead one, who may follow, and the waiting itself.
extension Exchange {
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
    func circumstances(
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

    nonisolated(nonsending) func board(_ load: Load) async -> HTTPFlightDesk.Boarding {
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
    nonisolated(nonsending) func outcome(
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
            noteWait()
            return outcome
        }
    }

    @inline(never)
    private func noteWait() {
        cache.recorder.waited(nanoseconds: waitedNanoseconds)
    }

    private var waitedNanoseconds: UInt64 {
        cache.clock.monotonicNanoseconds &- startedNanoseconds
    }

    /// What takes the waiter out when the request's own time is over; nil for a request without.
    @inline(never)
    private func timer(
        of waiter: HTTPFlight.WaiterID,
        in flight: HTTPFlight
    ) -> Task<Void, Never>? {
        guard let seconds = request.options.timeoutSeconds else { return nil }
        // What earlier waits took of the request's time is gone.
        let waited = waitedNanoseconds
        let limit = HTTPCache.nanoseconds(seconds)
        let nanoseconds = limit > waited ? limit - waited : 0
        return cache.supervisor.start { [clock = cache.clock] in
            guard (try? await clock.sleep(nanoseconds: nanoseconds)) != nil else { return }
            let error = CacheError(.deadlineExceeded, detail: "No answer within \(seconds) s")
            flight.leave(waiter, with: .failed(error, isShared: false))
        }
    }
}
