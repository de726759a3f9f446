/// The settings of a server.
public struct ServerConfiguration: Hashable, Sendable {
    /// The address it listens on.
    public var address: ListenAddress
    /// Event loops, each with a thread of its own.
    public var workers = 1
    /// The name in `Via`.
    public var name: String
    /// The limits of a message.
    public var wire = WireLimits()
    /// The time limits of clients.
    public var timeouts = Timeouts()
    /// The limit of one worker's open connections; one more closes the longest idle one.
    public var connectionsMax = 20_000
    /// Bytes of responses queued for one client before its next requests wait unread.
    public var queuedBytesMax = 256 * 1024
    /// Bytes of unwanted content that are read to save a connection.
    public var discardedBytesMax = 256 * 1024
    /// The path of the access log, `-` for standard output, or `nil` for no log.
    public var accessLog: String?

    /// Whether clients get the fields that name tags.
    public var tags = ProxyConfiguration.Tags.pass
    /// The fields that tell the responder about clients.
    public var forwarded = ProxyConfiguration.Forwarded.off

    /// The peers whose connections must begin with a PROXY header, with no others accepted; `nil`
    /// for clients that connect directly.
    public var proxyPeers: ProxyPeers?

    /// The treatment of PURGE.
    public var purging = Purging.refused

    /// The treatment of PURGE.
    public enum Purging: Hashable, Sendable {
        /// The server refuses it.
        case refused
        /// The responder answers it like any other request.
        case answered
    }

    /// The time limits of clients, in milliseconds.
    public struct Timeouts: Hashable, Sendable {
        /// From the first byte of a head to its last, and for the first request of a connection.
        public var headMilliseconds: Int64 = 10_000
        /// Between requests.
        public var idleMilliseconds: Int64 = 60_000
        /// Between two pieces of a request's content.
        public var contentMilliseconds: Int64 = 30_000
        /// Without the client taking a byte of the response.
        public var writeMilliseconds: Int64 = 60_000
        /// For the client's close behind the last response.
        public var lingerMilliseconds: Int64 = 2_000
        /// In a drain, for connections in their handshake; at most half of `drainIdle`.
        public var drainHandshakeMilliseconds: Int64 = 500
        /// In a drain, for the next request of a kept connection.
        public var drainIdleMilliseconds: Int64 = 2_000

        /// The default times.
        public init() {}
    }

    /// A server at `address` with the default settings.
    public init(address: ListenAddress, name: String) {
        self.address = address
        self.name = name
    }
}
