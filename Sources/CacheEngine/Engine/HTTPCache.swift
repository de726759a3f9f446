import HTTPCaching
import Synchronization

/// An HTTP cache: answers requests from what is stored, and asks the origin when it must.
///
/// ```swift
/// let cache = try await HTTPCache(
///     configuration: Configuration(memory: .megabytes(256)),
///     origin: origin
/// )
/// let response = try await cache.respond(to: CacheRequest(url: "https://example.com/"))
/// ```
///
/// A cache works from the moment it is made; `run()` adds the periodic work of a long-lived one,
/// and `shutDown()` ends it. Every method may be called from any task.
public final class HTTPCache: Sendable {
    /// How this cache is set up.
    public let configuration: Configuration

    let origin: any Origin
    let tiers: StorageTiers
    let desks: [HTTPFlightDesk]
    let lookout = Lookout()
    let gate: OriginGate?
    let supervisor: Supervisor
    let recorder: Recorder
    let clock: any CacheClock
    let variantRules: VariantRules
    /// The cache's name as `Cache-Status` spells it.
    let statusIdentifier: String
    private let defaultRules: StoringRules
    private let defaultTerms: ReuseTerms
    private let hasKeyHook: Bool

    /// Opens a cache in front of `origin`.
    ///
    /// - Throws: `CacheError` when the directory is in use, unusable or foreign, or when the
    ///   configuration contradicts itself.
    public init(configuration: Configuration = Configuration(), origin: any Origin) async throws {
        try configuration.validate()
        self.configuration = configuration
        self.origin = origin
        clock = configuration.clock
        supervisor = Supervisor(executor: configuration.taskExecutor)
        recorder = Recorder(onEvent: configuration.hooks.onEvent)
        tiers = try await StorageTiers.open(
            configuration,
            supervisor: supervisor,
            recorder: recorder
        )
        desks = (0..<Self.deskCount).map { _ in
            HTTPFlightDesk(limits: configuration.flights, desks: Self.deskCount)
        }
        gate = configuration.flights.originRequestsPerKeyMax.map { OriginGate(perKeyMax: $0) }
        variantRules = configuration.storing.variantRules
        let policy = configuration.policy
        defaultRules = configuration.storing.rules(mode: configuration.mode, policy: policy)
        defaultTerms = ReuseTerms(policy, configuration.storing)
        hasKeyHook = configuration.hooks.key != nil
        let status = CacheStatus(identifier: configuration.name, outcome: .hit)
        statusIdentifier = status.identifierText
    }

    private static let deskCount = 16

    func desk(_ hash: KeyHash) -> HTTPFlightDesk { desks[Int(hash.placement >> 60)] }

    func storingRules(_ policy: CachePolicy) -> StoringRules {
        if policy == configuration.policy { return defaultRules }
        return configuration.storing.rules(mode: configuration.mode, policy: policy)
    }

    func preferences(_ policy: CachePolicy) -> ReusePreferences {
        configuration.storing.preferences(policy: policy)
    }

    /// The terms of the policy that holds for `request`.
    @inline(__always)
    private func terms(of request: CacheRequest, _ policy: CachePolicy?) -> ReuseTerms {
        // Asked first: that copies neither policy nor options.
        if case .none = policy, request.options.isUsual { return defaultTerms }
        return particularTerms(of: request, policy)
    }

    @inline(never)
    private func particularTerms(of request: CacheRequest, _ policy: CachePolicy?) -> ReuseTerms {
        let policy = policy ?? request.options.policy ?? configuration.policy
        return ReuseTerms(policy, configuration.storing)
    }

    // MARK: Answering

    /// Answers a request under its own policy, or the cache's.
    ///
    /// A fresh answer in memory is returned without suspending, and without leaving the caller's
    /// actor.
    ///
    /// - Throws: `CacheError`; `.notCached` where the policy forbids loading and nothing is stored.
    nonisolated(nonsending) public func respond(
        to request: CacheRequest,
        policy: CachePolicy? = nil
    ) async throws -> CacheResponse {
        var response: CacheResponse?
        if !answerAtOnce(request, policy, with: &response) {
            try await exchange(for: request, policy).answer(with: &response)
        }
        return response.unsafelyUnwrapped
    }

    /// Not inlined: what it copies would lie in the frame of whoever waits.
    @inline(never)
    private func exchange(
        for request: CacheRequest,
        _ policy: CachePolicy?
    ) throws -> Exchange { try Exchange(self, request, policy: policy) }

    /// The answer, when it is in memory and may be used as it is; nil when it would take waiting.
    public func cachedResponse(
        for request: CacheRequest,
        policy: CachePolicy? = nil
    ) -> CacheResponse? {
        var response: CacheResponse?
        _ = answerAtOnce(request, policy, with: &response)
        return response
    }

    /// Not inlined either, and with the answer made where it belongs.
    ///
    /// - Returns: Whether there is one.
    @inline(never)
    private func answerAtOnce(
        _ request: CacheRequest,
        _ policy: CachePolicy?,
        with response: inout CacheResponse?
    ) -> Bool {
        let terms = terms(of: request, policy)
        guard terms.reads, request.isAnsweredByKey else { return false }
        // Before the look-up: the processor fetches fields and key at one time.
        let isPlain = terms.servesFresh && request.isPlain
        let nowSeconds = clock.nowSeconds
        guard let entry = entryInMemory(for: request, nowSeconds: UInt32(clamping: nowSeconds))
        else { return false }
        if isPlain, !tiers.staleMarks.isActive,
            let hit = PlainHit(entry, nowSeconds: nowSeconds)
        {
            recorder.answered(.fresh)
            response = serve(hit, of: entry)
            return true
        }
        response = reuse(entry, for: request, terms, nowSeconds)
        return response != nil
    }

    /// The entry under the key of the request.
    ///
    /// The closure takes numbers only: it would retain the cache, whose count all threads share,
    /// and copy the request; and an optional of an optional would retain the entry once more. The
    /// memory outlives the call, as the cache holds it unchanged; the entry comes retained once, and
    /// that is taken over once.
    @inline(__always)
    private func entryInMemory(for request: CacheRequest, nowSeconds: UInt32) -> Entry? {
        let hasher = tiers.hasher
        let memory = Unmanaged.passUnretained(tiers.memory)
        let found = withKey(of: request) { key, _ in
            memory._withUnsafeGuaranteedRef {
                $0.retainedEntry(for: hasher.hash(key), key: key, nowSeconds: nowSeconds)
            }
        }
        guard case .some(.some(let storage)) = found else { return nil }
        return Entry(unchecked: storage.takeRetainedValue())
    }

    /// What may be served of `primary`, or of the variant that the request selects by it, with no
    /// work behind it.
    @inline(never)
    private func reuse(
        _ primary: Entry,
        for request: CacheRequest,
        _ terms: ReuseTerms,
        _ nowSeconds: Int64
    ) -> CacheResponse? {
        var entry = primary
        if VariantIndex.isIndex(primary) {
            let now = UInt32(clamping: nowSeconds)
            guard let variant = variantInMemory(primary, request, nowSeconds: now) else {
                return nil
            }
            entry = variant
        }
        guard let stored = StoredResponse(StoredEntry(entry)) else { return nil }
        let facts = RequestFacts(method: request.method.kind, fields: request.fields.section)
        let decision = ReuseDecision.decide(
            stored: currentFacts(of: stored),
            request: facts,
            nowSeconds: nowSeconds,
            preferences: terms.preferences
        )
        var info: CacheInfo
        switch decision {
        case .serve(let age):
            guard !isRefreshDue(stored, ageSeconds: age) else { return nil }
            info = CacheInfo(source: .fresh, tier: .memory)
            info.ageSeconds = age
        case .serveStale(let age):
            guard !terms.refreshesStale else { return nil }
            info = CacheInfo(source: .stale, tier: .memory)
            info.ageSeconds = age
        case .serveStaleThenRevalidate, .revalidate, .fetch, .gatewayTimeout: return nil
        }
        let response = serve(stored, to: request, facts, as: info)
        if case .some = response {
            recorder.answered(info.source)
        }
        return response
    }

    /// What reuse is decided by: the stored facts, stale where a tag has been declared stale.
    func currentFacts(of stored: StoredResponse) -> StoredFacts {
        guard tiers.staleMarks.isActive else { return stored.facts }
        var facts = stored.facts
        let isMarked = stored.entry.withTags {
            tiers.staleMarks.covers($0, confirmedSeconds: facts.responseTimeSeconds)
        }
        if isMarked { facts.freshnessLifetimeSeconds = 0 }
        return facts
    }

    /// Whether so much of the lifetime has passed that a hit should also refresh.
    func isRefreshDue(_ stored: StoredResponse, ageSeconds: Int) -> Bool {
        guard let share = configuration.storing.refreshAheadShare else { return false }
        return Double(ageSeconds) >= share * Double(stored.facts.freshnessLifetimeSeconds)
    }

    /// Lends the key of the request to `body`; nil for a URL that is none.
    @inline(__always)
    func withKey<Result>(
        of request: CacheRequest,
        _ body: (UnsafeRawBufferPointer, TargetURL.Scheme) throws -> Result
    ) rethrows -> Result? {
        if request.options.isUsual, !hasKeyHook {
            return try KeyWriter.withKey(url: request.url, body)
        }
        return try KeyWriter.withKey(
            url: request.url,
            name: request.options.key ?? configuration.hooks.key?(request),
            partition: request.options.partition,
            body
        )
    }

    /// The key of the request, and whether its scheme is one whose answers are stored.
    func key(of request: CacheRequest) throws -> (key: RequestKey, isStorable: Bool) {
        let read = withKey(of: request) { bytes, scheme in
            (RequestKey(bytes: [UInt8](bytes), hash: tiers.hasher.hash(bytes)), scheme)
        }
        guard let (key, scheme) = read else {
            throw CacheError(
                .requestInvalid,
                detail: "Not an absolute URL: \(request.url.prefix(200))"
            )
        }
        return (key, scheme != .other || isAdditionalScheme(request.url))
    }

    private func isAdditionalScheme(_ url: String) -> Bool {
        let schemes = configuration.storing.additionalSchemes
        guard !schemes.isEmpty, let colon = url.firstIndex(of: ":") else { return false }
        return schemes.contains(url[..<colon].lowercased())
    }

    // MARK: Life cycle

    /// Does the periodic work of a long-lived cache until the task is cancelled, then shuts down.
    public func run() async {
        while supervisor.isOpen {
            do {
                try await clock.sleep(nanoseconds: Self.sweepNanoseconds)
            } catch { break }
            await tiers.sweep()
        }
        await shutDown()
    }

    private static let sweepNanoseconds: UInt64 = 5_000_000_000

    /// Ends all work: requests that wait get `.shutDown`, what was accepted is written out, and the
    /// directory is free when this returns.
    public func shutDown() async {
        supervisor.close()
        for desk in desks { await desk.abortAll(Self.shutDownError) }
        await tiers.drain()
        await supervisor.shutDown()
        await tiers.close()
    }

    /// Returns when the background work that runs now has ended.
    public func waitUntilIdle() async { await supervisor.waitUntilIdle() }

    // MARK: Looking

    /// What the cache has done so far, and what it holds.
    public var statistics: Statistics {
        get async {
            var statistics = recorder.snapshot
            statistics.memory = tiers.memory.usage()
            statistics.disk = await tiers.usageBehind()
            statistics.evictions = tiers.memory.counters().evictions
            return statistics
        }
    }
}

extension Configuration {
    /// Refuses what could only surprise later.
    func validate() throws {
        func require(_ isValid: Bool, _ detail: String) throws {
            guard isValid else { throw CacheError(.configurationInvalid, detail: detail) }
        }
        try require(!name.isEmpty, "The cache needs a name")
        try require(
            memory.entryShareMax > 0 && memory.entryShareMax <= 1,
            "entryShareMax must be above 0 and at most 1"
        )
        try require(
            (0...1).contains(memory.pinnedShareMax),
            "pinnedShareMax must lie between 0 and 1"
        )
        try require(originLimits.windowBytes > 0, "windowBytes must be above 0")
        try require(
            flights.waitersMax > 0 && flights.attemptsMax > 0 && flights.lookUpsMax > 0,
            "The limits of flights must be above 0"
        )
    }
}
