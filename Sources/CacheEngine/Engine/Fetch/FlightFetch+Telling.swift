import HTTPCaching

/// The requests that are told of a response, and the marks that it leaves on its key.
extension FlightFetch {
    /// Tells the waiters that the head has arrived.
    ///
    /// - Returns: The number of waiters that got the response; `nil`, without telling any waiter, if
    ///   the attempt had been given up.
    func tell(_ outcome: FetchOutcome, _ context: FetchContext, attempt: Int) -> Int? {
        let audience = audience(of: outcome)
        noteShareable(outcome, audience, context, attempt: attempt)
        let told = flight.answer(
            outcome.answer,
            for: audience,
            order: outcome.order,
            attempt: attempt,
            isBeingStored: outcome.sharing == .everyone && outcome.body?.storage == .whole
                || context.purpose == .refresh && Self.bringsPart(outcome)
        ) {
            services.mayCarryRemovedTag(
                outcome.answer,
                context.key.hash,
                since: context.ticket
            )
        }
        if told ?? 0 == 0 { invalidateUnasked(outcome.answer, context) }
        guard let told else { return nil }
        if context.purpose == .refresh {
            noteRefresh(context, refreshEnd(of: outcome, context))
        }
        if let refusal = outcome.answer.refusal {
            services.recorder.refused(refusal, context.asked.request)
        }
        return told
    }

    /// Removes what a request may have changed whose caller left before the response came.
    private func invalidateUnasked(_ answer: FlightAnswer, _ context: FetchContext) {
        // A POST under a key of the caller's own asks for something, and changes nothing.
        guard context.asked.request.method.kind.isUnsafe,
            !context.asked.request.isAnsweredByKey, !Mutant.forgetsWhatCallersLeave.isOn
        else { return }
        let invalidating = Invalidating(services: services, asked: context.asked)
        services.supervisor.start(on: executor) {
            await invalidating.removeTargets(of: answer)
        }
    }

    /// The requests that get the response.
    ///
    /// A response that must be confirmed before each use is for the requests that waited for it,
    /// and for no later request. Those that waited are told of a failure too: each gets its stored
    /// response if that may replace this status, and asks the origin by itself if not.
    private func audience(of outcome: FetchOutcome) -> FlightAudience {
        if outcome.sharing == .failure, !Mutant.sendsACrowdToAFailingOrigin.isOn {
            let mayConcernOne = StatusFacts(outcome.answer.status).mayConcernOneClient
            return mayConcernOne ? .asker : .waiting
        }
        if outcome.sharing == .askerWithCookie { return .askerWithCookie }
        guard outcome.sharing == .everyone else { return .asker }
        if case .confirmed(let stored) = outcome.answer.content,
            stored.entry.head.hash != flight.key
        {
            // An older set of selecting fields selected it, and not for each request of this key.
            return .waiting
        }
        guard let facts = outcome.answer.reusableFacts,
            facts.isFresh(at: services.clock.nowSeconds), !facts.flags.contains(.noCache)
        else { return .waiting }
        return .everyone
    }

    /// Marks the key if only the request that was sent gets the response, or if the response is too
    /// large to be stored; removes its marks after any other response that all may get.
    ///
    /// A mark that a request's cookies cause is for requests with cookies, and a response that later
    /// requests get removes it.
    private func noteShareable(
        _ outcome: FetchOutcome,
        _ audience: FlightAudience,
        _ context: FetchContext,
        attempt: Int
    ) {
        let key = flight.key
        switch outcome.sharing {
        case .failure: break
        case .everyone:
            services.desk(key).noteShareable(key, isForAll: audience == .everyone)
            if outcome.answer.refusal == .tooLarge, let body = outcome.body { noteTooLarge(body) }
        case .askerOnly, .askerWithCookie:
            // An error caused by one client's request does not concern the others, nor does the
            // response to a refresh with one client's credentials.
            let mayConcernOne =
                StatusFacts(outcome.answer.status).mayConcernOneClient
                && !Mutant.marksForProvokedRefusals.isOn
            // A part says nothing of the whole.
            guard let desk, !mayConcernOne, !context.asksForPart,
                !context.isPersonal(services.configuration) || Mutant.marksForOneClient.isOn,
                // A newer flight, or the next attempt, tells what later requests get.
                flight.permit.isValid, flight.awaitsAnswer(of: attempt)
            else { return }
            if outcome.sharing == .askerWithCookie { return services.markForCookies(key) }
            services.recorder.counters.add(.hitForMissMarks)
            desk.noteUnshareable(key, nowNanoseconds: services.clock.monotonicNanoseconds)
        }
    }

    /// Marks the keys of a response that is too large to be stored: that of the flight, and that of
    /// the variant, under which later requests look if its index is stored.
    func noteTooLarge(_ body: PendingBody) {
        let now = services.clock.monotonicNanoseconds
        for key in [flight.key, body.key.hash] {
            services.desk(key).noteTooLarge(key, nowNanoseconds: now)
        }
    }

    // MARK: Refreshing

    /// Whether the outcome of a refresh is that there is a newer response for all requests, or a newer
    /// part.
    ///
    /// A passing error is a failure, though it may be stored for the time that it states.
    private static func refreshes(_ outcome: FetchOutcome) -> Bool {
        guard outcome.answer.refusal == nil else { return false }
        if bringsPart(outcome) { return true }
        guard outcome.sharing == .everyone else { return false }
        if case .confirmed = outcome.answer.content { return true }
        return !StatusFacts(outcome.answer.status).isPassingError
    }

    private static func bringsPart(_ outcome: FetchOutcome) -> Bool {
        if case .part = outcome.body?.storage { return true }
        return false
    }

    private func refreshEnd(of outcome: FetchOutcome, _ context: FetchContext) -> RefreshEnd {
        if Self.refreshes(outcome) { return .succeeded }
        // The mark keeps requests with cookies from the next refresh.
        return outcome.sharing == .askerWithCookie ? .failedForOne : failedRefresh(context)
    }

    func failedRefresh(_ context: FetchContext) -> RefreshEnd {
        context.isPersonal(services.configuration) ? .failedForOne : .failed
    }

    func noteRefresh(
        _ context: FetchContext,
        _ end: RefreshEnd
    ) {
        services.recorder.refreshed(succeeded: end == .succeeded, context.asked.request)
        desk?.noteRefresh(
            flight.key,
            end,
            nowNanoseconds: services.clock.monotonicNanoseconds
        )
    }
}

extension Services {
    /// Whether the answer carries a tag that was removed since `ticket`, as far as is known.
    func mayCarryRemovedTag(
        _ answer: FlightAnswer,
        _ key: KeyHash,
        since ticket: RemovalLedger.Ticket
    ) -> Bool {
        let ledger = tiers.ledger
        guard ledger.hasRemovedTags(since: ticket) else { return false }
        switch answer.content {
        case .confirmed(let stored), .found(let stored):
            return !ledger.permits(stored.entry, since: ticket)
        // The hook may add tags until the response is stored.
        case .shared where configuration.hooks.willStore != nil: return true
        case .shared, .own:
            guard
                let tags = configuration.caching.tags(in: answer.sharedFields)
                    .flatMap({ TagList($0) })
            else { return true }
            return !ledger.permits(key, tags, since: ticket)
        }
    }

    /// Marks the key for requests with cookies.
    func markForCookies(_ key: KeyHash) {
        let isNew = desk(key).noteUnshareableWithCookie(
            key,
            nowNanoseconds: clock.monotonicNanoseconds
        )
        if isNew { recorder.counters.add(.hitForMissMarks) }
    }
}
