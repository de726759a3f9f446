import CacheEngine
import CacheEngineRedis

/// The settings of `cache-proxy`, from its command line and its file.
struct ProxyConfiguration: Sendable {
    /// The address that clients connect to.
    var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8080)
    /// The origins behind the proxy.
    var origins: [OriginAddress] = []
    /// The limit of the cache's memory.
    var memory = ByteCount.megabytes(256)
    /// The directory of the disk cache, or `nil` for no disk cache.
    var diskDirectory: String?
    /// The limit of the directory's size.
    var diskSize = ByteCount.gigabytes(10)
    /// The writes that the disk confirms, so that they survive a power cut.
    var diskSync = BackingStore.Durability.none
    /// The number of event loops.
    var workers = 1
    /// Whether the cache is shared by clients or private to one.
    var mode = HTTPCache.Configuration.Mode.shared
    /// The address of the administration, or `nil` for none.
    var admin: ListenAddress?
    /// The file whose first line is the token for purges.
    var purgeTokenFile: String?
    /// The path of the access log, `-` for standard output, or `nil` for no log.
    var accessLog: String?
    /// The configuration file, which SIGHUP reads again.
    var file: String?
    /// The proxy's name in `Via`, `CDN-Loop` and `Cache-Status`.
    var name: String { didSet { isNameGenerated = false } }
    /// Whether the name was generated because none was given.
    private(set) var isNameGenerated = true
    /// The time from the end of a request to the first byte of the origin's response.
    var firstByteTime = Duration.seconds(60)
    /// The time for connecting to an origin, TLS included.
    var connectTime = Duration.seconds(2)
    /// The time that may pass without a byte to or from an origin.
    var betweenBytesTime = Duration.seconds(60)
    /// The limit of connections to one origin, or `nil` for the limit of the clients' connections.
    var originConnectionsMax: Int?
    /// The limit of connections to all origins together, or `nil` for the sum of their limits.
    var originConnectionsTotalMax: Int?
    /// The limit of idle connections to origins on each event loop, or `nil` for the usual one.
    var originConnectionsIdleMax: Int?
    /// The time for the head of a request.
    var headTime = Duration.seconds(10)
    /// The time that a connection may be idle between requests.
    var idleTime = Duration.seconds(60)
    /// The time for running responses when the proxy ends.
    var drainTime = Duration.seconds(30)
    /// The limit of one worker's connections.
    var connectionsMax = 20_000
    /// The limit of a request's content in bytes.
    var contentMax = ByteCount.gigabytes(1)

    /// The time that may pass without the client taking a byte of a response.
    var sendTime = Duration.seconds(60)
    /// The treatment of responses with `Set-Cookie`.
    var cookies = CachingRules.Cookies.refuse
    /// The time that a stale response may be used, for responses that do not say so themselves.
    var grace = Duration.zero
    /// The same time if the origin gives no response.
    var staleOnFailure = Duration.seconds(86_400)
    /// The lifetimes of responses that have none, by status.
    var lifetimes: [Int: Duration] = [:]
    /// The parameters of queries that neither keys nor origins get; `nil` if there are none.
    var ignoredParameters: IgnoredParameters?
    /// The content encodings that origins offer; `nil` if they get what clients accept.
    var encodings: OfferedEncodings?
    /// Whether clients see `Cache-Tag` and `Surrogate-Key`.
    var tags = Tags.strip
    /// The fetch for a conditional request that finds nothing stored.
    var conditionMiss = CachingRules.ConditionMiss.whole
    /// Whether `Cache-Control` and `Pragma` of requests are ignored.
    var ignoresClientCacheControl = false
    /// The names of the request fields that origins get.
    var fieldNames = FieldNames.plain
    /// The host that origins get in `Host`.
    var originHost = OriginHost.client
    /// The fields that tell origins about clients.
    var forwarded = Forwarded.off
    /// The proxies in front, which name their clients in PROXY headers; `nil` if clients connect
    /// directly.
    var proxyPeers: ProxyPeers?

    /// The Redis servers and the namespace of the fleet's log, or `nil` for no fleet.
    var fleet: String?
    /// The time without the fleet's log after which this machine counts as cut off.
    var fleetLag = Duration.seconds(10)
    /// The behaviour of this machine while it is cut off from the fleet's log.
    var fleetCutOff = RedisFleetOptions.CutOff.serve
    /// The things that the machines of the fleet share.
    var fleetShares = RedisFleetOptions.Sharing.purges

    /// The treatment of the fields that name tags.
    enum Tags: String, CaseIterable, Hashable, Sendable {
        /// Clients get them.
        case pass
        /// The proxy removes them from responses to clients.
        case strip
    }

    /// The names of the request fields that origins get.
    enum FieldNames: String, CaseIterable, Hashable, Sendable {
        /// Names of letters, digits and hyphens; fields with other names are removed.
        case plain
        /// All names.
        case any
    }

    /// The host in the `Host` of requests to origins.
    enum OriginHost: String, CaseIterable, Hashable, Sendable {
        /// The host of the key, which the client asked for.
        case client
        /// The host of the origin's own URL.
        case origin
    }

    /// The treatment of `X-Forwarded-For`, `-Proto`, `-Host` and `Forwarded` (RFC 7239).
    enum Forwarded: String, CaseIterable, Hashable, Sendable {
        /// Origins get them as the client sent them.
        case off
        /// The client is appended to those it sent.
        case add
        /// The client's own fields are removed, and name the client alone.
        case replace
    }

    /// The default settings, and a random name.
    init() { name = "cache-proxy-" + String(UInt32.random(in: .min ... .max), radix: 16) }
}
