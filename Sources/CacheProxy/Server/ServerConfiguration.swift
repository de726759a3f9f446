/// The settings of a server.
struct ServerConfiguration: Hashable, Sendable {
    /// The address it listens on.
    var address: ListenAddress
    /// Event loops, each with a thread of its own.
    var workers = 1
    /// The name in `Via`.
    var name: String
    /// The limits of a message.
    var wire = WireLimits()
    /// The time limits of clients.
    var timeouts = Timeouts()
    /// The limit of one worker's open connections; one more closes the longest idle one.
    var connectionsMax = 20_000
    /// Bytes of a streamed response, or of a part of an entry, that wait for one client as a copy.
    ///
    /// Its next requests wait unread behind so many bytes, and at the latest behind 64 KiB.
    var queuedBytesMax = 256 * 1024
    /// Bytes of unwanted content and its framing that are read to save a connection.
    var discardedBytesMax = 256 * 1024
    /// The path of the access log, `-` for standard output, or `nil` for no log.
    var accessLog: String?

    /// Whether clients get the fields that name tags.
    var tags = ProxyConfiguration.Tags.pass
    /// The names of the fields that the responder gets.
    var fieldNames = ProxyConfiguration.FieldNames.plain
    /// The fields that tell the responder about clients.
    var forwarded = ProxyConfiguration.Forwarded.off
    /// The parameters of queries that the responder does not get; `nil` if there are none.
    var ignoredParameters: IgnoredParameters?
    /// The content encodings of which the responder gets one; `nil` if it gets what clients accept.
    var encodings: OfferedEncodings?

    /// The peers whose connections must begin with a PROXY header, with no others accepted; `nil`
    /// for clients that connect directly.
    var proxyPeers: ProxyPeers?

    /// The treatment of PURGE.
    var purging = Purging.refused

    /// The treatment of PURGE.
    enum Purging: Hashable, Sendable {
        /// The server refuses it.
        case refused
        /// The responder answers it like any other request.
        case answered
    }

    /// The time limits of clients.
    struct Timeouts: Hashable, Sendable {
        /// From the first byte of a head to its last, and for the first request of a connection.
        var head = Duration.seconds(10)
        /// Between requests.
        var idle = Duration.seconds(60)
        /// Between two pieces of a request's content.
        var content = Duration.seconds(30)
        /// Without the client taking a byte of the response.
        var write = Duration.seconds(60)
        /// In a drain, for the next request of a kept connection.
        var drainIdle = Duration.seconds(2)
        /// For the client's close after the last response.
        static let linger = Duration.seconds(2)
        /// In a drain, for connections in their handshake; at most half of `drainIdle`.
        static let drainHandshake = Duration.milliseconds(500)
    }

    /// A server at `address` with the default settings.
    init(address: ListenAddress, name: String) {
        self.address = address
        self.name = name
    }
}
