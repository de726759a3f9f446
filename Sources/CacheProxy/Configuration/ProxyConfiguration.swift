public import CacheEngine

/// Everything `cache-proxy` can be told, whether on its command line or in its file.
public struct ProxyConfiguration: Sendable {
    /// Where clients connect.
    public var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8080)
    /// The servers behind it.
    public var origins: [OriginAddress] = []
    /// The memory the cache may use.
    public var memory = ByteCount.megabytes(256)
    /// The directory of the disk cache, or nil for none.
    public var diskDirectory: String?
    /// How much the directory may hold.
    public var diskSize = ByteCount.gigabytes(10)
    /// Event loops.
    public var workers = 1
    /// Whose cache it is.
    public var mode = Configuration.Mode.shared
    /// Where metrics and purges are served, or nil for nowhere.
    public var admin: ListenAddress?
    /// The file whose first line is the token of purges.
    public var purgeTokenFile: String?
    /// Where requests are logged.
    public var accessLog: String?
    /// The configuration file, to be read again on SIGHUP.
    public var file: String?
    /// What the proxy calls itself in `Via`, `CDN-Loop` and `Cache-Status`.
    public var name: String
    /// Seconds until an origin's answer must begin.
    public var originSeconds = 60.0
    /// Seconds a client has for the head of a request.
    public var headSeconds = 10.0
    /// Seconds a connection may be idle.
    public var idleSeconds = 60.0
    /// Seconds that running answers have when the proxy is told to end.
    public var drainSeconds = 30.0
    /// Connections of one worker.
    public var connectionsMax = 20_000
    /// Bytes of a request's content.
    public var contentMax = ByteCount.gigabytes(1)

    /// The usual settings, and a name that no other proxy has.
    public init() { name = "cache-proxy-" + String(UInt32.random(in: .min ... .max), radix: 16) }
}

/// Why a configuration cannot be used: one line for people.
public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line.
    public let description: String

    package init(_ description: String) { self.description = description }
}
