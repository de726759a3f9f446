public import CacheEngine
public import CacheEngineRedis

/// The settings of `cache-proxy`, from its command line and its file.
public struct ProxyConfiguration: Sendable {
    /// The address that clients connect to.
    public var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8080)
    /// The origins behind the proxy.
    public var origins: [OriginAddress] = []
    /// The limit of the cache's memory.
    public var memory = ByteCount.megabytes(256)
    /// The directory of the disk cache, or `nil` for no disk cache.
    public var diskDirectory: String?
    /// The limit of the directory's size.
    public var diskSize = ByteCount.gigabytes(10)
    /// The writes that the disk confirms, so that they survive a power cut.
    public var diskSync = BackingStore.Durability.none
    /// The number of event loops.
    public var workers = 1
    /// Whether the cache is shared by clients or private to one.
    public var mode = HTTPCache.Configuration.Mode.shared
    /// The address of the administration, or `nil` for none.
    public var admin: ListenAddress?
    /// The file whose first line is the token for purges.
    public var purgeTokenFile: String?
    /// The path of the access log, `-` for standard output, or `nil` for no log.
    public var accessLog: String?
    /// The configuration file, which SIGHUP reads again.
    public var file: String?
    /// The proxy's name in `Via`, `CDN-Loop` and `Cache-Status`.
    public var name: String { didSet { isNameGenerated = false } }
    /// Whether the name was generated because none was given.
    private(set) var isNameGenerated = true
    /// Seconds from the end of a request to the first byte of the origin's response.
    public var originSeconds = 60.0
    /// Seconds for connecting to an origin, TLS included.
    public var connectSeconds = 2.0
    /// Seconds that may pass without a byte to or from an origin.
    public var betweenBytesSeconds = 60.0
    /// The limit of connections to one origin, or `nil` for the limit of the clients' connections.
    public var originConnectionsMax: Int?
    /// The limit of connections to all origins together, or `nil` for the sum of their limits.
    var originConnectionsTotalMax: Int?
    /// The limit of idle connections to origins on each event loop, or `nil` for the usual one.
    var originConnectionsIdleMax: Int?
    /// Seconds for the head of a request.
    public var headSeconds = 10.0
    /// Seconds that a connection may be idle between requests.
    public var idleSeconds = 60.0
    /// Seconds for running responses when the proxy ends.
    public var drainSeconds = 30.0
    /// The limit of one worker's connections.
    public var connectionsMax = 20_000
    /// The limit of a request's content in bytes.
    public var contentMax = ByteCount.gigabytes(1)

    /// Seconds that may pass without the client taking a byte of a response.
    public var sendSeconds = 60.0
    /// The treatment of responses with `Set-Cookie`.
    public var cookies = CachingRules.Cookies.refuse
    /// Seconds that a stale response may be used, for responses that do not say so themselves.
    public var graceSeconds = 0
    /// Whether clients see `Cache-Tag` and `Surrogate-Key`.
    public var tags = Tags.strip
    /// The fetch for a conditional request that finds nothing stored.
    public var conditionMiss = CachingRules.ConditionMiss.whole
    /// Whether `Cache-Control` and `Pragma` of requests are ignored.
    public var ignoresClientCacheControl = false
    /// The fields that tell origins about clients.
    public var forwarded = Forwarded.off
    /// The proxies in front, which name their clients in PROXY headers; `nil` if clients connect
    /// directly.
    public var proxyPeers: ProxyPeers?

    /// The Redis servers and the namespace of the fleet's log, or `nil` for no fleet.
    public var fleet: String?
    /// Seconds without the fleet's log after which this machine counts as cut off.
    public var fleetLagSeconds = 10.0
    /// The behaviour of this machine while it is cut off from the fleet's log.
    public var fleetCutOff = RedisFleetOptions.CutOff.serve
    /// The things that the machines of the fleet share.
    public var fleetShares = RedisFleetOptions.Sharing.purges

    /// The treatment of the fields that name tags.
    public enum Tags: String, CaseIterable, Hashable, Sendable {
        /// Clients get them.
        case pass
        /// The proxy removes them from responses to clients.
        case strip
    }

    /// The treatment of `X-Forwarded-For`, `-Proto`, `-Host` and `Forwarded` (RFC 7239).
    public enum Forwarded: String, CaseIterable, Hashable, Sendable {
        /// Origins get them as the client sent them.
        case off
        /// The client is appended to those it sent.
        case add
        /// The client's own fields are removed, and name the client alone.
        case replace
    }

    /// The default settings, and a random name.
    public init() { name = "cache-proxy-" + String(UInt32.random(in: .min ... .max), radix: 16) }
}
