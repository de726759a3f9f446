public import CacheEngine

/// The configuration of a `CurlOrigin`: how it connects, and how much it accepts.
public struct CurlConfiguration: Hashable, Sendable {
    /// The versions of HTTP to use.
    public enum ProtocolVersion: Hashable, Sendable {
        /// HTTP/2 if TLS negotiates it (ALPN, RFC 9113 §3.2), otherwise HTTP/1.1.
        case automatic
        /// HTTP/1.1 only.
        case http1
        /// HTTP/2 from the first byte, even without TLS (RFC 9113 §3.3).
        case http2PriorKnowledge
    }

    /// How an origin's certificate is verified.
    public enum Verification: Hashable, Sendable {
        /// The system's certificate authorities.
        case systemAuthorities
        /// The certificate authorities in a PEM file, and no others.
        case authorities(file: String)
        /// No verification: every certificate is accepted. For experiments only.
        case none
    }

    /// The time limits of the steps of an exchange; `nil` means no limit.
    public struct Deadlines: Hashable, Sendable {
        /// The limit until the connection is established, TLS included.
        public var connect: Duration?
        /// The limit from the end of the request, content included, until the head of the response.
        ///
        /// If the request has its own limit, the shorter one applies.
        public var head: Duration?
        /// The limit without a byte of content that the origin takes, or of body received while the
        /// reader waits.
        public var idle: Duration?
        /// The limit until the end of the body.
        public var total: Duration?

        /// Creates deadlines; the defaults suit a nearby origin.
        public init(
            connect: Duration? = .seconds(10),
            head: Duration? = .seconds(60),
            idle: Duration? = .seconds(60),
            total: Duration? = nil
        ) {
            self.connect = connect
            self.head = head
            self.idle = idle
            self.total = total
        }
    }

    /// The limits on the number of connections.
    ///
    /// An exchange keeps its connection until it ends. A slow reader, a stream of events or a slow
    /// upload makes that late, so with a limit below the number of such exchanges other requests
    /// wait.
    public struct Connections: Hashable, Sendable {
        /// The maximum number of connections in use at once to one host.
        ///
        /// Further requests wait for one of them, for at most `Deadlines.head` and `connect`
        /// together, or for the time of their own.
        public var maximumPerHost: Int
        /// The maximum number of connections in use at once to all hosts.
        public var maximumTotal: Int
        /// The maximum number of idle connections kept open.
        public var maximumIdle: Int

        /// Creates limits for one pool.
        public init(maximumPerHost: Int = 1024, maximumTotal: Int = 4096, maximumIdle: Int = 256) {
            self.maximumPerHost = maximumPerHost
            self.maximumTotal = maximumTotal
            self.maximumIdle = maximumIdle
        }
    }

    /// The limits on the size of a response.
    public struct Limits: Hashable, Sendable {
        /// The maximum number of field lines in one head.
        public var maximumFields: Int
        /// The maximum number of bytes in a head, together with the 1xx heads before it.
        public var maximumHeadSize: ByteCount
        /// The maximum number of 1xx heads before the response.
        public var maximumInformational: Int
        /// The maximum body bytes that wait for a slow reader, in each direction of one exchange.
        public var maximumWindow: ByteCount

        /// Creates limits for one response.
        public init(
            maximumFields: Int = 512,
            maximumHeadSize: ByteCount = .kilobytes(256),
            maximumInformational: Int = 32,
            maximumWindow: ByteCount = .kilobytes(256)
        ) {
            self.maximumFields = maximumFields
            self.maximumHeadSize = maximumHeadSize
            self.maximumInformational = maximumInformational
            self.maximumWindow = maximumWindow
        }

        /// The bytes of the window; without any, nothing would move.
        package var windowBytesMax: Int { max(1, maximumWindow.bytes) }
    }

    /// The versions of HTTP to use.
    public var protocolVersion: ProtocolVersion
    /// How an origin's certificate is verified.
    public var verification: Verification
    /// The time limits of the steps.
    public var deadlines: Deadlines
    /// The limits on the number of connections.
    public var connections: Connections
    /// The limits on the size of a response.
    public var limits: Limits
    /// The URL of a proxy; `nil` means no proxy.
    ///
    /// It may have a user and a password: `http://user:password@host:port`. Environment variables are
    /// ignored.
    public var proxy: String?

    /// Whether requests are sent to an HTTP proxy; another kind carries connections to the origin.
    var hasHTTPProxy: Bool {
        guard let proxy, !proxy.isEmpty else { return false }
        guard let schemeEnd = proxy.firstRange(of: "://") else { return true }
        return ["http", "https"].contains(proxy[..<schemeEnd.lowerBound].lowercased())
    }

    /// Creates a configuration; the defaults verify certificates and use no proxy.
    public init(
        protocolVersion: ProtocolVersion = .automatic,
        verification: Verification = .systemAuthorities,
        deadlines: Deadlines = Deadlines(),
        connections: Connections = Connections(),
        limits: Limits = Limits(),
        proxy: String? = nil
    ) {
        self.protocolVersion = protocolVersion
        self.verification = verification
        self.deadlines = deadlines
        self.connections = connections
        self.limits = limits
        self.proxy = proxy
    }
}
