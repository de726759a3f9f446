import HTTPCaching
import Platform

/// One request that cannot be answered synchronously.
///
///     look ──reuse──────────────────────────────▶ respond
///      │ ▲                                          ▲
///      │ └─lookAgain──┐                             │
///      └─────▶ board ─┴─answered────────────────────┤
///                └──goAlone, escape──▶ fetchAlone ──┘
///
/// Each step names the next one. `FlightFetch` fetches; its outcome is handled once, in `finish`.
///
/// Two references, like the contexts of its fetches: ten thousand requests may wait for one response,
/// and each frame that waits holds only references. For the same reason the steps around the wait
/// are not inlined.
struct RequestRunner: Sendable {
    /// The next step.
    enum Step {
        /// Look up the stored response.
        case look
        /// Wait for a flight that fetches the response.
        case board(FetchContext)
        /// Wait for the flight that the request has boarded outside a task; a flight for this
        /// request alone is the last.
        indirect case aboard(
            FetchContext,
            FlightBoarding,
            isAlone: Bool
        )
        /// Ask the origin for this request only.
        case fetchAlone(FetchContext, FlightEscape)
        /// Ask the origin for this request only, which has waited too long for the flight of this
        /// key.
        ///
        /// Indirect, to keep the frame of a request that waits small.
        indirect case escape(FetchContext, KeyHash)
        /// Return the response, and start the refresh that follows it.
        ///
        /// Indirect, to keep the frame of a request that waits small.
        indirect case respond(CacheResponse, refresh: FetchContext?)
    }

    let services: Services
    let asked: RequestContext

    var request: CacheRequest { asked.request }
    var facts: RequestFacts { asked.facts }
    var policy: CachePolicy { asked.policy }
    var key: RequestKey { asked.key }
    var boarding: Boarding { Boarding(services, asked) }

    /// - Throws: `CacheError` if the URL is invalid, the cache is closing, or a fetch asks for the
    ///   key that it is fetching.
    init(
        _ services: Services,
        _ request: consuming CacheRequest,
        _ policy: CachePolicy?
    ) throws {
        guard services.supervisor.isOpen else { throw CacheError.cacheShutDown }
        let (key, isStorable) = try services.key(of: request)
        let ancestors = AncestorFetch.underWay
        guard !ancestors.contains(where: { $0.key == key.hash }) else {
            throw CacheError(
                .loadRecursed,
                detail: "The origin requested the URL that it is fetching: "
                    + "`\(PlainText.excerpt(url: request.url))`"
            )
        }
        self.services = services
        let facts = services.configuration.caching.facts(of: request)
        let terms = services.terms(of: request, policy)
        let policy = services.policy(of: request, policy)
        let started = services.clock.monotonicNanoseconds
        let longest = max(services.headNanoseconds, request.options.timeout?.nanoseconds ?? 0)
        asked = RequestContext(
            request,
            facts,
            policy,
            terms,
            key,
            isStorable: isStorable,
            startedNanoseconds: started,
            untilNanoseconds: started &+ longest,
            ancestors: ancestors
        )
    }

    /// Takes the steps from `first` on, to the response.
    nonisolated(nonsending) func response(from first: Step = .look) async throws -> CacheResponse {
        guard isCacheable else { return try await pass() }
        var step = first
        // A request that began outside a task has looked once.
        var looks = if case .look = first { 0 } else { 1 }
        while true {
            switch consume step {
            case .look:
                looks += 1
                step =
                    looks <= services.configuration.collapsing.maximumLookUps
                    ? try await look() : .fetchAlone(contextWithoutLookup(), .lookedTooOften)
            case .board(let context):
                let boarded = boarding.board(context, nowNanoseconds: nowNanoseconds)
                step = try finish(await boarding.outcome(of: boarded, context), context)
            case .aboard(let context, let boarded, let isAlone):
                let outcome = await boarding.outcome(of: boarded, context)
                step = isAlone ? try finishAlone(outcome, context) : try finish(outcome, context)
            case .fetchAlone(let context, let reason):
                step = try await fetchAlone(context, because: reason)
            case .escape(let context, let key):
                step = try await fetchAlone(context, because: .waitedTooLong, leaving: key)
            case .respond(let response, let refresh):
                respond(response, refresh)
                return response
            }
        }
    }

    /// Whether the policy, the method and the scheme let a stored response be used, or the response
    /// be stored.
    var isCacheable: Bool { asked.isStorable && isAnsweredByStore }

    /// Whether the policy and the method let a stored response be used, or the response be stored.
    var isAnsweredByStore: Bool {
        (asked.policy.reads || asked.policy.writes) && asked.request.isAnsweredByKey
    }

    /// Counts the response, and starts the refresh that follows it.
    func respond(_ response: CacheResponse, _ refresh: FetchContext?) {
        noteAnswer(response)
        if let refresh { boarding.refresh(refresh) }
    }

    /// Counts the response, and reports it to the application's hook.
    @inline(never)
    func noteAnswer(_ response: CacheResponse) {
        services.recorder.answered(
            response.info.source,
            .init(request, response, nanoseconds: boarding.waitedNanoseconds)
        )
    }

    var builder: ResponseBuilder { ResponseBuilder(services) }
    var nowNanoseconds: UInt64 { services.clock.monotonicNanoseconds }

    @inline(never)
    private func contextWithoutLookup() -> FetchContext {
        let ticket = services.tiers.ledger.ticket()
        let lookup = LookupResult.nothing(key, isUncertain: true)
        return FetchContext(asked, lookup: lookup, ticket: ticket)
    }

    // MARK: Looking

    /// Looks up the stored response, and uses it if that is allowed.
    @inline(never)
    nonisolated(nonsending) private func look() async throws -> Step {
        // Before the look-up: an entry that is removed after it must not be restored.
        let ticket = services.tiers.ledger.ticket()
        if let step = try stepWithoutLookup(ticket) { return step }
        let lookup = await Lookup(services).result(
            for: key,
            request.fields.section,
            untilNanoseconds: boarding.moment(after: request.options.timeout),
            mayRefuse: true
        )
        return try step(after: lookup, ticket)
    }

    /// The step that follows a certain miss, which needs no look-up; `nil` if there may be an entry.
    func stepWithoutLookup(_ ticket: consuming RemovalLedger.Ticket) throws -> Step? {
        guard !policy.reads || services.tiers.noteCertainMiss(key) else { return nil }
        return try step(after: .nothing(key), ticket)
    }

    /// The step that follows a look-up.
    ///
    /// Not inlined, so that the frame of a look-up stays small.
    @inline(never)
    private func step(
        after lookup: consuming LookupResult,
        _ ticket: consuming RemovalLedger.Ticket
    ) throws -> Step {
        let step = reuseStep(lookup)
        if let (response, isRefreshed) = response(step, lookup) {
            let refresh = isRefreshed ? refreshContext(lookup, ticket) : nil
            return .respond(response, refresh: refresh)
        }
        guard policy.onMiss == .load else { throw Self.notCached }
        // A look-up behind the memory may have ended because the task was cancelled.
        try Task.checkCancellation()
        return .board(context(of: lookup, step, ticket))
    }

    private func context(
        of lookup: consuming LookupResult,
        _ step: ReuseStep,
        _ ticket: consuming RemovalLedger.Ticket
    ) -> FetchContext {
        // `.fetch`: the stored response must not be used, not even for a condition.
        if case .fetch = step, lookup.stored != nil {
            return FetchContext(asked, lookup: .nothing(key), found: lookup, ticket: ticket)
        }
        return FetchContext(asked, lookup: lookup, ticket: ticket)
    }

    /// The stored response in place of a fetched one whose body broke off with `error`.
    ///
    /// It is not counted: the request has been answered.
    ///
    /// - Throws: `error`, if no stored response may be served.
    func standIn(after error: any Error) async throws -> CacheResponse {
        guard isCacheable else { throw error }
        let ticket = services.tiers.ledger.ticket()
        let lookup = await Lookup(services).result(
            for: key,
            request.fields.section,
            mayRefuse: true
        )
        return try builder.fallback(for: error, context(of: lookup, reuseStep(lookup), ticket))
    }

    private func reuseStep(_ lookup: LookupResult) -> ReuseStep {
        guard let stored = lookup.stored else { return ReuseStep(missing: facts, asked.terms) }
        return ReuseStep(
            stored,
            for: facts,
            asked.terms,
            services.tiers,
            refreshAheadShare: services.configuration.caching.refreshAheadShare,
            nowSeconds: services.clock.nowSeconds
        )
    }

    /// The response without the origin, if there is one.
    private func response(
        _ step: ReuseStep,
        _ lookup: LookupResult
    ) -> (CacheResponse, isRefreshed: Bool)? {
        switch step {
        case .respond(let source, let age, let isRefreshed):
            guard let stored = lookup.stored else { return nil }
            let info = CacheInfo(source: source, tier: lookup.tier, ageSeconds: age)
            if let response = builder.response(stored, to: request, facts, info) {
                return (response, isRefreshed)
            }
            // Only the origin can answer this request: it refreshes the stored response itself.
            return facts.onlyIfCached ? (builder.gatewayTimeout(), false) : nil
        case .gatewayTimeout: return (builder.gatewayTimeout(), false)
        case .revalidate, .fetch: return nil
        }
    }

    static let notCached = CacheError(
        .notCached,
        detail: "No stored response is usable, and the request must not reach the origin"
    )

    // MARK: Finishing

    /// Turns the outcome of the flight into the next step.
    @inline(never)
    func finish(
        _ outcome: FlightOutcome,
        _ context: FetchContext
    ) throws -> Step {
        switch outcome {
        case .lookAgain:
            try Task.checkCancellation()
            return .look
        case .goAlone(let reason): return .fetchAlone(context, reason)
        case .escape(let key): return .escape(context, key)
        case .failed(let error, let isShared):
            let error = isShared ? Self.shared(error) : error
            return .respond(try builder.fallback(for: error, context), refresh: nil)
        case .answered(let answer, let isAsker):
            if !isAsker, let step = stepWithoutUse(of: answer, context) {
                if case .shared(let body) = answer.content { body.decline() }
                return step
            }
            guard let response = builder.response(answer, to: context, isAsker: isAsker) else {
                return stepWithoutResponse(answer, context, isAsker: isAsker)
            }
            return .respond(response, refresh: refreshOfWhole(after: response, context))
        }
    }

    /// The step after an answer that gives this request no response.
    func stepWithoutResponse(
        _ answer: FlightAnswer,
        _ context: FetchContext,
        isAsker: Bool
    ) -> Step {
        // The body has ended meanwhile: it is stored, or the next flight fetches it.
        if case .shared(let body) = answer.content, !isAsker, body.isLetGo { return .look }
        return .fetchAlone(context, .unshareable)
    }

    /// The error as seen by requests that shared the fetch.
    private static func shared(_ error: any Error) -> any Error {
        guard var error = error as? CacheError else { return error }
        error.isShared = true
        return error
    }

    /// The step of a request that waited for an answer to another, and may not use it; `nil` if it
    /// may.
    @inline(never)
    private func stepWithoutUse(of answer: FlightAnswer, _ context: FetchContext) -> Step? {
        if isForAnotherVariant(answer, context) { return .look }
        guard isWithheldByCookie(answer, context) else { return nil }
        services.markForCookies(context.lookup.flightKey.hash)
        return .fetchAlone(context, .unshareable)
    }

    /// Whether each use of the response must be confirmed, and the cookies of this request would keep
    /// it from being stored.
    ///
    /// The origin may have another response for these cookies.
    private func isWithheldByCookie(_ answer: FlightAnswer, _ context: FetchContext) -> Bool {
        let now = services.clock.nowSeconds
        guard context.hasCookie(services.configuration), !Mutant.sharesDespiteCookies.isOn,
            let facts = answer.reusableFacts,
            !facts.isFresh(at: now) || facts.flags.contains(.noCache)
        else { return false }
        let fields: FieldSection =
            switch answer.content {
            case .confirmed(let stored), .found(let stored): stored.fields()
            case .shared, .own: answer.sharedFields
            }
        let response = ReceivedResponse(
            status: Int(facts.status),
            fields: fields,
            to: context.factsForStoring,
            rules: services.storingRules(context.policy),
            requestSeconds: now,
            responseSeconds: now
        )
        return response.isRefusedToThisRequestAlone
    }

    /// Whether the response varies, and this request selects another variant.
    private func isForAnotherVariant(_ answer: FlightAnswer, _ context: FetchContext) -> Bool {
        guard let variance = answer.variance else {
            switch answer.content {
            case .confirmed(let stored), .found(let stored):
                // An older set of selecting fields may have selected it for the request that was sent.
                return !context.lookup.selects(stored.entry.head.hash)
                    && !Mutant.sharesOlderVariants.isOn
            case .shared, .own: return false
            }
        }
        let mine = Lookup(services).variantKey(
            of: key,
            by: variance.index,
            variance.vary,
            request.fields.section
        )
        return mine != variance.key
    }

    // MARK: Alone

    /// Asks the origin for this request only, which left the flight of `key` if that is given.
    @inline(never)
    nonisolated(nonsending) private func fetchAlone(
        _ context: FetchContext,
        because reason: FlightEscape,
        leaving key: KeyHash? = nil
    ) async throws -> Step {
        note(reason)
        // A request that waited too long does not store: the fetch that it waited for does.
        let own = key == nil ? context : context.withoutStoring
        let boarded = boarding.boardAlone(own, nowNanoseconds: nowNanoseconds)
        let outcome = await boarding.outcome(of: boarded, own)
        if let key { boarding.leaveEscape(from: key, outcome) }
        return try finishAlone(outcome, own)
    }

    func note(_ reason: FlightEscape) {
        services.recorder.escaped(reason, request)
    }

    /// Turns the outcome of a flight for this request alone into its last step.
    func finishAlone(
        _ outcome: FlightOutcome,
        _ context: FetchContext
    ) throws -> Step {
        try Self.last(try finish(outcome, context))
    }

    /// The step after the flight of a request alone: no other follows it.
    static func last(_ step: Step) throws -> Step {
        switch step {
        case .respond: return step
        case .fetchAlone:
            throw CacheError.misbehaved("The origin's response does not fit the stored part")
        // Its flight tells its only request a response or an error.
        case .look, .board, .aboard, .escape: throw CacheError.nothingTold
        }
    }
}
