import HTTPCaching
import Synchronization

/// The fetch of one flight: asks the origin, tries again with the next request, tells the waiters,
/// and delivers the body.
///
///     lead ──outcome──▶ deliver ──▶ end
///       │ ▲
///       │ └──elected── giveUp ──over──▶ end
///       └──────────fails──┘
final class FlightFetch: Sendable {
    let services: Services
    let flight: Flight
    /// The desk at which other requests join; `nil` for a request that is alone.
    let desk: FlightDesk?
    let progress: FlightProgress
    /// The number at the watchdog.
    private let watch = Atomic(0)

    /// The context that the flight was started with.
    var context: FetchContext { flight.founder }

    /// The executor of all tasks of the flight; `nil` for the cache's own.
    var executor: (any TaskExecutor)? { context.asked.request.options.taskExecutor }

    private init(
        _ services: Services,
        _ flight: Flight,
        _ desk: FlightDesk?,
        _ nowNanoseconds: UInt64
    ) {
        self.services = services
        self.flight = flight
        self.desk = desk
        progress = FlightProgress(nowNanoseconds: nowNanoseconds)
    }

    /// Starts the leader of `flight`; the watchdog watches the flight until it ends.
    static func start(
        _ services: Services,
        _ flight: Flight,
        _ desk: FlightDesk?,
        nowNanoseconds: UInt64
    ) {
        if desk != nil { services.recorder.counters.add(.flights) }
        let fetch = FlightFetch(services, flight, desk, nowNanoseconds)
        fetch.watch.store(services.watchdog.add(fetch), ordering: .relaxed)
        fetch.startLeader(flight.founder, attempt: 1)
    }

    /// Starts another leader in the place of a hanging one.
    func replaceLeader(_ context: FetchContext, attempt: Int) {
        AncestorFetch.within(flight.founder.asked.ancestors) {
            startLeader(context, attempt: attempt)
        }
    }

    func end() {
        desk?.withdraw(flight)
        flight.close()
        progress.end()
        services.watchdog.remove(watch.load(ordering: .relaxed))
    }

    /// Sends requests until the origin responds to one or no request is left to try.
    ///
    /// - Returns: The last attempt that this leader made.
    nonisolated(nonsending) func lead(_ context: FetchContext, attempt: Int) async -> Int {
        var context = context
        var attempt = attempt
        while true {
            do {
                if services.tiers.hasOutlet {
                    try await askFleet(context, attempt: attempt)
                } else {
                    _ = try await ask(context, attempt: attempt)
                }
                return attempt
            } catch {
                let failure = giveUp(context, error, attempt: attempt)
                guard case .elected(let next, let nextAttempt) = failure else { return attempt }
                context = next
                attempt = nextAttempt
            }
        }
    }

    /// Makes one attempt that looks into the fleet's shared store before the origin is asked.
    ///
    /// Not inlined, so that the frame of a fetch without a fleet stays small.
    @inline(never)
    nonisolated(nonsending) private func askFleet(_ context: FetchContext, attempt: Int)
        async throws
    {
        guard let shared = SharedFetch(services, desk, context) else {
            _ = try await ask(context, attempt: attempt)
            return
        }
        guard services.supervisor.isOpen else { throw CacheError.cacheShutDown }
        switch await shared.finding(flight.permit) {
        case .answer(let answer):
            _ = tell(FetchOutcome(answer: answer, sharing: .everyone), context, attempt: attempt)
        case .lead(let context, let lease):
            var ending = SharedLease.Ending.failed
            defer { services.tiers.outlet?.tier.end(lease, ending) }
            if try await ask(context, attempt: attempt, lease: lease) { ending = .unshareable }
        case .fetch(let context):
            _ = try await ask(context, attempt: attempt, mayReplaceShared: false)
        }
    }

    /// Makes one attempt: sends the request, and delivers its response; returns whether that arrived
    /// whole and tells that other machines get a response of their own.
    ///
    /// `lease` is the fleet's for this fetch. Without it, the response may replace a record of
    /// another machine if `mayReplaceShared`.
    nonisolated(nonsending) private func ask(
        _ context: FetchContext,
        attempt: Int,
        lease: SharedLease? = nil,
        mayReplaceShared: Bool = true
    ) async throws -> Bool {
        guard services.supervisor.isOpen else { throw CacheError.cacheShutDown }
        let fetch = fetchAttempt(context, number: attempt, mayReplaceShared: mayReplaceShared)
        let answer = try await fetch.ask()
        let remainder = takeHead(of: answer, fetch)
        let isWhole: Bool
        if case .done(let isAnswered) = remainder {
            isWhole = isAnswered
        } else {
            isWhole = try await finish(remainder, of: answer, fetch, lease)
        }
        return isWhole && lease != nil && Self.tellsOfOthers(answer.status)
            && fetch.isCurrent(answer)
    }

    /// Whether a response of that status that is not shared tells of the next ones.
    ///
    /// Neither a failure of the origin nor an error that one client's request causes does, and a 304
    /// confirms the record that others may use.
    private static func tellsOfOthers(_ status: Int) -> Bool {
        let facts = StatusFacts(status)
        if Mutant.givesUpForOneClient.isOn { return !facts.isServerError }
        return !facts.isServerError && !facts.mayConcernOneClient && status != 304
    }

    func fetchAttempt(
        _ context: FetchContext,
        number: Int,
        mayReplaceShared: Bool = true
    ) -> FetchAttempt {
        var ticket = context.ticket
        ticket.permit = flight.permit
        ticket.mayReplaceShared = mayReplaceShared
        return FetchAttempt(services, context, number: number, ticket, isShared: desk != nil)
    }

    /// Does the work that taking the head left; returns whether the response arrived whole.
    ///
    /// Not inlined, so that the frame of a fetch that waits for its head stays small.
    @inline(never)
    nonisolated(nonsending) func finish(
        _ remainder: Remainder,
        of answer: OriginAnswer,
        _ fetch: FetchAttempt,
        _ lease: SharedLease?
    ) async throws -> Bool {
        let outcome: FetchOutcome
        switch remainder {
        case .done(let isAnswered): return isAnswered
        case .decided(let decision):
            outcome = try await fetch.outcome(answer, decision)
        case .arrives(let arriving): outcome = arriving
        }
        if let lease { endEarly(lease, outcome) }
        return await deliver(outcome, fetch.context, attempt: fetch.number)
    }

    /// Ends the lease with the head if the body is not going to be shared, so that no machine waits
    /// for its end.
    private func endEarly(_ lease: SharedLease, _ outcome: FetchOutcome) {
        guard let body = outcome.body, Self.tellsOfOthers(outcome.answer.status) else { return }
        let isTooLarge = (body.origin.expectedCount ?? 0) > SharedRecord.entryBytesMax
        guard body.storage != .whole || isTooLarge else { return }
        services.tiers.outlet?.tier.end(lease, .unshareable)
    }

    // MARK: Failing

    /// Ends a failed attempt, and elects the request that is tried next, if there is one.
    func giveUp(
        _ context: FetchContext,
        _ error: any Error,
        attempt: Int
    ) -> Flight.Failure {
        let error = shown(error)
        // Read before the waiters are told: the time for which the error is shared begins here.
        let now = services.clock.monotonicNanoseconds
        let failure = flight.fail(
            error,
            attempt: attempt,
            // A request whose time ends before the watchdog's next check has no time left for an
            // attempt.
            nowNanoseconds: now + services.watchdog.tickNanoseconds,
            isUnlike: { [founder = self.context] in
                !$0.sendsSameFields(as: context) && !$0.sendsSameFields(as: founder)
            }
        )
        if case .superseded = failure { return failure }
        services.recorder.originFailed(error, context.asked.request)
        let isUnreachable = (error as? CacheError)?.code == .originUnreachable
        if context.purpose == .refresh {
            noteRefresh(context, isUnreachable ? .unreachable : failedRefresh(context))
        }
        switch failure {
        case .elected: services.recorder.counters.add(.reElections)
        case .over:
            guard let desk else { break }
            services.recorder.counters.add(.sharedErrors)
            guard isUnreachable else { break }
            desk.noteUnreachable(by: flight, error, nowNanoseconds: now)
        case .superseded: break
        }
        return failure
    }

    /// The error as waiters see it; the fetch's own cancellation is not a cancellation of theirs.
    private func shown(_ error: any Error) -> any Error {
        guard services.supervisor.isOpen else { return CacheError.cacheShutDown }
        guard error is CancellationError else { return error }
        return CacheError(.originFailed, detail: "The origin cancelled the request")
    }

    // MARK: Delivering

    /// The work that is left when all that needs no wait has been done.
    ///
    /// Indirect, to keep the frame of a fetch that waits small.
    enum Remainder {
        /// `isAnswered` is false if the attempt had been given up.
        case done(isAnswered: Bool)
        indirect case decided(FetchDecision)
        indirect case arrives(FetchOutcome)
    }

    /// Stores a response that is complete, and tells the waiters, without a wait; returns what is
    /// left if that is not possible.
    ///
    /// Not inlined, for the reason of `finish`.
    @inline(never)
    func takeHead(of answer: OriginAnswer, _ fetch: FetchAttempt) -> Remainder {
        let context = fetch.context
        let decision = FetchDecision.decide(answer, to: fetch.question, context, services)
        guard var outcome = fetch.outcomeAtOnce(answer, decision) else {
            return .decided(decision)
        }
        outcome.order = answer.order
        if let body = outcome.body {
            guard case .present(let chunk) = body.shared else { return .arrives(outcome) }
            outcome.isStored =
                entry(of: body, context, attempt: fetch.number).storeAtOnce(chunk)
            guard outcome.isStored, services.tiers.backing.settlesAtOnce else {
                return .arrives(outcome)
            }
            withdraw(body)
        }
        return .done(isAnswered: tell(outcome, context, attempt: fetch.number) != nil)
    }

    /// The entry of a body that arrived with its head.
    private func entry(
        of body: PendingBody,
        _ context: FetchContext,
        attempt: Int
    ) -> FetchedEntry {
        FetchedEntry(
            services: services,
            context: context,
            body: body,
            isGivenUp: !flight.awaitsAnswer(of: attempt)
        )
    }

    /// Tells the waiters that the head has arrived, and delivers the body; returns `false` if the body
    /// broke off or the attempt had been given up.
    nonisolated(nonsending) private func deliver(
        _ outcome: FetchOutcome,
        _ context: FetchContext,
        attempt: Int
    ) async -> Bool {
        if let body = outcome.body, case .present(let chunk) = body.shared {
            // It is delivered first: the waiters get it with the head.
            let entry = entry(of: body, context, attempt: attempt)
            if body.storage == .none {
                await entry.endReplaced()
            } else {
                if !outcome.isStored { await entry.store(.inMemory([chunk]), body.builder) }
                await services.tiers.settle(body.key.hash)
            }
            withdraw(body)
        }
        // Those told now must know that nothing is kept for them.
        if let body = outcome.body, body.storage == .none { body.chain?.pass() }
        guard let told = tell(outcome, context, attempt: attempt) else { return false }
        guard let body = outcome.body, let chain = body.chain,
            case .arriving(let arriving) = body.origin.body
        else { return true }
        // A new chain awaits one request. Those told may have joined already; the writer begins
        // below, so it sees the whole sum.
        chain.awaitReaders(more: told - 1)
        progress.arriving(chain)
        return await BodyDelivery(
            fetch: self,
            context: context,
            body: body,
            arriving: arriving,
            chain: chain
        ).run()
    }

    /// Takes the flight from its desk, because its response is stored.
    func withdraw(_ body: PendingBody) {
        // An abandoned attempt must not remove the flight of its successor.
        if body.isPermitted { desk?.withdraw(flight) }
    }
}
