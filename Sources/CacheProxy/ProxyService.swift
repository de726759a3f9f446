public import CacheEngine
import CurlOrigin

/// A running proxy: cache, origins, listeners.
public final class ProxyService: Sendable {
    /// The cache behind it.
    public let cache: HTTPCache
    private let configuration: ProxyConfiguration
    private let pool: OriginPool
    private let desk: AdminDesk
    private let server: ProxyServer
    private let admin: ProxyServer?
    private let sweeping: Task<Void, Never>

    /// Opens the cache and listens.
    ///
    /// - Throws: `CacheError`, `SystemError` or `ConfigurationError`, each one line for people.
    public convenience init(_ configuration: ProxyConfiguration) async throws {
        var curl = CurlConfiguration()
        curl.deadlines.headSeconds = configuration.originSeconds
        try await self.init(configuration, upstream: CurlOrigin(configuration: curl))
    }

    /// The same over another origin and clock: for tests.
    package init(
        _ configuration: ProxyConfiguration,
        upstream: any Origin,
        clock: any CacheClock = SystemClock(),
        adjust: (inout Configuration) -> Void = { _ in }
    ) async throws {
        self.configuration = configuration
        pool = OriginPool(configuration.origins, name: configuration.name, upstream: upstream)
        var engine = Self.engineConfiguration(configuration, clock)
        adjust(&engine)
        let token = try configuration.purgeTokenFile.map { try ConfigurationReader.token($0) }
        cache = try await HTTPCache(configuration: engine, origin: pool)
        desk = AdminDesk(cache: cache, pool: pool, token: token)
        var started: ProxyServer?
        do {
            started = try configuration.admin.map { [desk] address in
                var settings = ServerConfiguration(address: address, name: configuration.name)
                settings.purging = .answered
                settings.connectionsMax = 256
                return try ProxyServer(settings, responder: desk)
            }
            admin = started
            server = try ProxyServer(
                Self.serverConfiguration(configuration),
                responder: CacheResponder(cache: cache),
                clock: clock
            )
        } catch {
            await started?.stop()
            await cache.shutDown()
            throw error
        }
        desk.show(server)
        sweeping = Task { [cache] in await cache.run() }
    }

    /// Where clients connect.
    public var address: ListenAddress { server.address }
    /// Where its keeper connects.
    public var adminAddress: ListenAddress? { admin?.address }

    package var counters: [WorkerCounters] { server.counters }

    /// Takes over what can change while it runs: origins, purge token, and a new log file.
    ///
    /// - Returns: Names of settings that differ and need a restart.
    public func reload(_ new: ProxyConfiguration) throws(ConfigurationError) -> [String] {
        let token: String?
        if let path = new.purgeTokenFile {
            token = try ConfigurationReader.token(path)
        } else {
            token = nil
        }
        desk.setToken(token)
        pool.replace(new.origins)
        server.reopenLog()
        var left: [String] = []
        if new.listen != configuration.listen { left.append("listen") }
        if new.admin != configuration.admin { left.append("admin") }
        if new.memory != configuration.memory { left.append("memory") }
        if new.diskDirectory != configuration.diskDirectory { left.append("disk") }
        if new.diskSize != configuration.diskSize { left.append("disk-size") }
        if new.workers != configuration.workers { left.append("workers") }
        if new.mode != configuration.mode { left.append("mode") }
        if new.accessLog != configuration.accessLog { left.append("access-log") }
        return left
    }

    /// Accepts nothing more, finishes what was begun within the drain time, and closes the cache.
    public func shutDown() async {
        let limit = UInt64(configuration.drainSeconds * 1e9)
        // A task of its own: whoever calls may have been cancelled already.
        let timer = Task { [server] in
            try await Task.sleep(nanoseconds: limit)
            await server.stop()
        }
        await server.drain()
        timer.cancel()
        await admin?.stop()
        sweeping.cancel()
        await sweeping.value
    }

    private static func engineConfiguration(
        _ configuration: ProxyConfiguration,
        _ clock: any CacheClock
    ) -> Configuration {
        var engine = Configuration(
            memory: .bytes(configuration.memory.bytes),
            disk: configuration.diskDirectory.map { .directory($0, configuration.diskSize) }
                ?? .disabled,
            mode: configuration.mode
        )
        engine.name = configuration.name
        engine.clock = clock
        engine.originLimits.headSecondsMax = configuration.originSeconds
        return engine
    }

    private static func serverConfiguration(
        _ configuration: ProxyConfiguration
    ) -> ServerConfiguration {
        var server = ServerConfiguration(address: configuration.listen, name: configuration.name)
        server.workers = configuration.workers
        server.connectionsMax = configuration.connectionsMax
        server.accessLog = configuration.accessLog
        server.timeouts.headMilliseconds = Int64(configuration.headSeconds * 1_000)
        server.timeouts.idleMilliseconds = Int64(configuration.idleSeconds * 1_000)
        server.wire.contentBytesMax = configuration.contentMax.bytes
        return server
    }
}
