import CacheEngine
import CacheEngineRedis
import CurlOrigin
import Platform
import Synchronization

/// A running proxy: the cache, the origins and the listeners.
final class ProxyService: Sendable {
    /// The proxy's cache.
    let cache: HTTPCache
    let configuration: ProxyConfiguration
    let pool: OriginPool
    /// The configuration with the options that were changed while the proxy runs.
    let current: Mutex<ProxyConfiguration>
    /// The parameters that requests do not have, as the last reload left them.
    let ignored: CurrentParameters
    /// The connections in use to origins, whatever the configuration they were made under.
    let budget: ConnectionBudget
    let desk: AdminDesk
    let server: ProxyServer
    let admin: ProxyServer?
    private let upkeep: Task<Void, Never>

    /// Opens the cache and listens.
    ///
    /// - Throws: `CacheError`, `SystemError` or `ConfigurationError`, each described by one line.
    convenience init(_ configuration: ProxyConfiguration) async throws {
        let curl = Self.curlConfiguration(configuration)
        let budget = ConnectionBudget(curl.connections)
        let upstream = Self.upstream(curl, budget)
        try await self.init(configuration, upstream: upstream, budget: budget) {
            $0.hooks.onFault = { event in
                switch event {
                case .storageFailed(let error): ProxyProgram.say("Storage: \(error)")
                case .fleetFailed(let error): ProxyProgram.say("Fleet: \(error)")
                case .fleetLinked: ProxyProgram.say("Fleet: the log is read")
                default: break
                }
            }
        }
    }

    /// The same with another origin and clock, for tests.
    init(
        _ configuration: ProxyConfiguration,
        upstream: any Origin,
        budget: ConnectionBudget? = nil,
        clock: any CacheClock = SystemClock(),
        adjust: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws {
        self.configuration = configuration
        current = Mutex(configuration)
        ignored = CurrentParameters(configuration.ignoredParameters)
        self.budget = budget ?? ConnectionBudget(Self.curlConfiguration(configuration).connections)
        pool = OriginPool(
            configuration.origins,
            name: configuration.name,
            upstream: upstream,
            host: configuration.originHost,
            report: ProxyProgram.say
        )
        var engine = Self.engineConfiguration(configuration, clock)
        engine.requestURL = { [ignored] in ignored.removed(from: $0) }
        adjust(&engine)
        let token = try configuration.purgeTokenFile.map(ConfigurationReader.token)
        cache = try await HTTPCache(
            configuration: engine,
            origin: pool,
            fleet: try Self.fleet(configuration)
        )
        desk = AdminDesk(cache: cache, pool: pool, token: token)
        var started: ProxyServer?
        do {
            started = try configuration.admin.map { [desk] address in
                try ProxyServer(
                    ProxyService.adminConfiguration(configuration, at: address),
                    responder: desk
                )
            }
            admin = started
            server = try ProxyServer(
                Self.serverConfiguration(configuration),
                responder: CacheResponder(
                    cache: cache,
                    uploadTime: Self.uploadTime(configuration)
                ),
                clock: clock,
                report: ProxyProgram.say
            )
        } catch {
            await started?.stop()
            pool.shutDown()
            await cache.shutDown()
            throw error
        }
        desk.show(server)
        upkeep = Task { [cache] in await cache.run() }
    }

    /// The address that clients connect to.
    var address: ListenAddress { server.address }
    /// The address of the administration.
    var adminAddress: ListenAddress? { admin?.address }

    var counters: [WorkerCounters] { server.counters }

    /// Opens the access log again.
    func reopenLog() { server.reopenLog() }

    /// Stops accepting, finishes running responses within the drain time, and closes the cache.
    func shutDown() async {
        let limit = configuration.drainTime
        // A task of its own: the caller may be cancelled already.
        let timer = Task {
            try await Task.sleep(for: limit)
            await endDrain()
        }
        await server.drain()
        // Until then it tells of the drain.
        await admin?.drain()
        timer.cancel()
        pool.shutDown()
        upkeep.cancel()
        await upkeep.value
    }

    /// Cuts the responses that `shutDown` waits for, which then closes the cache.
    func endDrain() async {
        await server.stop()
        await admin?.stop()
    }

    /// The way to the origins: over TLS with libcurl, else on the workers' own event loops.
    static func upstream(
        _ configuration: CurlConfiguration,
        _ budget: ConnectionBudget
    ) -> PlainOrigin {
        PlainOrigin(
            configuration: configuration,
            budget: budget,
            secure: CurlOrigin(configuration: configuration)
        )
    }

    /// Checks what the start of a proxy would refuse, and starts nothing.
    ///
    /// The reader of the options refuses what it knows of; the engine may have further rules.
    static func validate(_ configuration: ProxyConfiguration) throws {
        let engine = engineConfiguration(configuration, SystemClock())
        try engine.validate(in: fleet(configuration))
    }

    private static func fleet(_ configuration: ProxyConfiguration) throws -> Fleet? {
        var options = RedisFleetOptions()
        options.maximumLag = configuration.fleetLag
        options.whenCutOff = configuration.fleetCutOff
        options.shares = configuration.fleetShares
        return try configuration.fleet.map { try Fleet.redis($0, options: options) }
    }

    private static func engineConfiguration(
        _ configuration: ProxyConfiguration,
        _ clock: any CacheClock
    ) -> HTTPCache.Configuration {
        var engine = HTTPCache.Configuration(
            memory: .bytes(configuration.memory.bytes),
            backing: configuration.diskDirectory.map {
                .disk(path: $0, capacity: configuration.diskSize)
            } ?? BackingStore.none,
            mode: configuration.mode
        )
        engine.backing.durability = configuration.diskSync
        engine.name = configuration.name
        engine.clock = clock
        // `CurlOrigin` limits each step; this limits all of them, at every origin in turn.
        engine.originLimits.maximumHeadTime =
            configuration.firstByteTime + configuration.connectTimeOfAll
        engine.originLimits.maximumIdleTime = configuration.betweenBytesTime
        engine.caching.cookies = configuration.cookies
        engine.caching.staleWhileRevalidate = configuration.grace
        engine.caching.staleIfError = configuration.grace
        engine.caching.staleOnDisconnect = configuration.staleOnFailure
        engine.caching.statusLifetimes = configuration.lifetimes
        engine.caching.conditionMiss = configuration.conditionMiss
        engine.caching.requestDirectives =
            configuration.ignoresClientCacheControl ? .ignore : .honour
        return engine
    }

    /// The engine's limit for an upload: longer than the client's limit for a pause, and than those
    /// of the way to the origin for a pause and for the first byte.
    ///
    /// Those limits tell a client that stands still from an origin that does. The engine counts from
    /// the last movement of either, so it must not be first. The added second is for the checks of
    /// those limits, four in a second.
    static func uploadTime(_ configuration: ProxyConfiguration) -> Duration {
        let clientTime = serverConfiguration(configuration).timeouts.content
        let longest = max(configuration.firstByteTime, configuration.betweenBytesTime, clientTime)
        return longest + configuration.connectTimeOfAll + .seconds(1)
    }

    static func curlConfiguration(
        _ configuration: ProxyConfiguration
    ) -> CurlConfiguration {
        var curl = CurlConfiguration()
        curl.deadlines.connect = configuration.connectTime
        curl.deadlines.head = configuration.firstByteTime
        curl.deadlines.idle = configuration.betweenBytesTime
        // As many as clients can hold, so that slow clients cannot take every connection.
        let maximumPerHost =
            configuration.originConnectionsMax
            ?? configuration.connectionsMax * configuration.workers
        // Origins with TLS and without have a client each, which counts its own connections.
        let clients = Set(configuration.origins.map(\.isPlain)).count
        let maximumTotal = min(
            maximumPerHost * max(1, configuration.origins.count),
            (configuration.originConnectionsTotalMax ?? .max) / max(1, clients)
        )
        curl.connections.maximumPerHost = min(maximumPerHost, maximumTotal)
        curl.connections.maximumTotal = maximumTotal
        if let idleMax = configuration.originConnectionsIdleMax {
            curl.connections.maximumIdle = idleMax
        }
        return curl
    }

    static func serverConfiguration(
        _ configuration: ProxyConfiguration
    ) -> ServerConfiguration {
        var server = ServerConfiguration(address: configuration.listen, name: configuration.name)
        server.workers = configuration.workers
        server.connectionsMax = configuration.connectionsMax
        server.accessLog = configuration.accessLog
        server.timeouts.head = configuration.headTime
        server.timeouts.idle = configuration.idleTime
        server.timeouts.write = configuration.sendTime
        // Most of the drain's time is for running responses.
        server.timeouts.drainIdle = min(server.timeouts.drainIdle, configuration.drainTime / 4)
        server.tags = configuration.tags
        server.ignoredParameters = configuration.ignoredParameters
        server.encodings = configuration.encodings
        server.fieldNames = configuration.fieldNames
        server.forwarded = configuration.forwarded
        server.proxyPeers = configuration.proxyPeers
        server.wire.contentBytesMax = configuration.contentMax.bytes
        return server
    }

    /// The settings of the administration: a purge names the key that a client's request has.
    static func adminConfiguration(
        _ configuration: ProxyConfiguration,
        at address: ListenAddress
    ) -> ServerConfiguration {
        var admin = ServerConfiguration(address: address, name: configuration.name)
        admin.purging = .answered
        admin.ignoredParameters = configuration.ignoredParameters
        admin.connectionsMax = 256
        // It drains last: its idle connections keep nothing waiting.
        admin.timeouts.drainIdle = .zero
        return admin
    }
}
