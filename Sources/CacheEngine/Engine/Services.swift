import HTTPCaching
import Platform

/// The parts that every step of a request may use: configuration, clock, tiers, flights, tasks,
/// counts.
///
/// It holds no rule and does no work. Each step takes it; no step knows `HTTPCache`.
final class Services: Sendable {
    let configuration: HTTPCache.Configuration
    let clock: any CacheClock
    let origin: any Origin
    /// The origin, if an event loop can ask it without a task.
    let loopOrigin: (any LoopOrigin)?
    /// The way to the other machines; `nil` without a fleet.
    let relay: (any PurgeRelay)?
    let tiers: TieredStore
    let supervisor: Supervisor
    let recorder: Recorder
    let watchdog: FlightWatchdog
    /// The bytes of the bodies that arrive.
    let bodies: BodyBudget
    /// Limits the requests at the origin per key; `nil` without a limit.
    let gate: OriginGate?
    /// The flights, each desk for its share of the keys.
    let desks: [FlightDesk]
    let variantRules: VariantRules
    let statusName: StatusName
    let hasKeyHook: Bool
    /// The time for the head of a response, unless a request has more of its own.
    let headNanoseconds: UInt64
    private let defaultRules: StoringRules
    private let defaultTerms: ReuseTerms

    private static let deskCount = 16

    /// Opens the tiers that the configuration asks for.
    ///
    /// - Throws: `CacheError` if the directory is in use, unusable or holds other files, or the
    ///   configuration contradicts itself.
    init(
        _ configuration: HTTPCache.Configuration,
        _ origin: any Origin,
        _ relay: (any PurgeRelay)? = nil
    ) async throws {
        try configuration.validate(sharesEntries: relay?.sharedTier != nil)
        self.configuration = configuration
        self.origin = origin
        loopOrigin = origin as? any LoopOrigin
        self.relay = relay
        clock = configuration.clock
        supervisor = Supervisor(executor: configuration.taskExecutor)
        recorder = Recorder(
            onEvent: configuration.hooks.onEvent,
            onFault: configuration.hooks.onFault
        )
        watchdog = FlightWatchdog(
            clock: clock,
            supervisor: supervisor,
            tickNanoseconds: configuration.watchNanoseconds
        )
        bodies = BodyBudget(configuration.bodyLimits ?? configuration.memory.bodyLimits)
        tiers = try await TieredStore.open(
            configuration,
            supervisor: supervisor,
            recorder: recorder,
            outlet: relay?.sharedTier.map { SharedOutlet(tier: $0) }
        )
        gate = configuration.collapsing.maximumOriginRequestsPerKey.map {
            OriginGate(perKeyMax: $0)
        }
        desks = (0..<Self.deskCount).map { _ in
            FlightDesk(limits: configuration.collapsing, desks: Self.deskCount)
        }
        variantRules = configuration.caching.variantRules
        statusName = StatusName(configuration.name)
        hasKeyHook = configuration.hooks.key != nil
        headNanoseconds = configuration.originLimits.maximumHeadTime.nanoseconds
        let policy = configuration.policy
        defaultRules = configuration.caching.rules(mode: configuration.mode, policy: policy)
        defaultTerms = ReuseTerms(policy, configuration.caching)
    }

    /// The desk of the flights of a key.
    func desk(_ hash: KeyHash) -> FlightDesk { desks[Int(hash.placement >> 60)] }

    /// The rules of storing under `policy`.
    func storingRules(_ policy: CachePolicy) -> StoringRules {
        if policy == configuration.policy { return defaultRules }
        return configuration.caching.rules(mode: configuration.mode, policy: policy)
    }

    /// The policy that holds for `request`.
    func policy(of request: CacheRequest, _ policy: CachePolicy?) -> CachePolicy {
        policy ?? request.options.policy ?? configuration.policy
    }

    /// The terms of reuse of the policy that holds for `request`.
    @inline(__always)
    func terms(of request: CacheRequest, _ policy: CachePolicy?) -> ReuseTerms {
        // Checked first: the usual request copies neither policy nor options.
        if case .none = policy, request.options.isUsual { return defaultTerms }
        return particularTerms(of: request, policy)
    }

    @inline(never)
    private func particularTerms(of request: CacheRequest, _ policy: CachePolicy?) -> ReuseTerms {
        terms(self.policy(of: request, policy))
    }

    /// The terms of reuse under `policy`.
    func terms(_ policy: CachePolicy) -> ReuseTerms { ReuseTerms(policy, configuration.caching) }
}

/// The keys of requests.
extension Services {
    /// Lends the key of the request to `body`; returns `nil` if the URL is not absolute.
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

    /// The key of the request, and whether responses of its scheme are stored.
    func key(of request: CacheRequest) throws -> (key: RequestKey, isStorable: Bool) {
        let read = withKey(of: request) { bytes, scheme in
            (RequestKey(bytes: [UInt8](bytes), hash: tiers.hasher.hash(bytes)), scheme)
        }
        guard let (key, scheme) = read else {
            let url = PlainText.excerpt(url: request.url)
            let isEncoded = request.url.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
            throw CacheError(
                .requestInvalid,
                detail: isEncoded
                    ? "The URL is not absolute: `\(url)`; give scheme, host and path"
                    : "The URL contains a space or a control character; escape it: `\(url)`"
            )
        }
        return (key, scheme != .other || isAdditionalScheme(request.url))
    }

    private func isAdditionalScheme(_ url: String) -> Bool {
        let schemes = configuration.caching.additionalSchemes
        guard !schemes.isEmpty, let colon = url.firstIndex(of: ":") else { return false }
        return schemes.contains(url[..<colon].lowercased())
    }
}
