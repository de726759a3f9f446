/// How a `CurlOrigin` connects, and how much it accepts.
public struct CurlConfiguration: Sendable {
    /// Which versions of HTTP are spoken.
    public enum ProtocolVersion: Hashable, Sendable {
        /// HTTP/2 where TLS agrees on it (ALPN, RFC 9113 §3.2), else HTTP/1.1.
        case automatic
        /// HTTP/1.1 only.
        case http1
        /// HTTP/2 from the first byte, also without TLS (RFC 9113 §3.3).
        case http2PriorKnowledge
    }

    /// Whom an origin's certificate must convince.
    public enum Verification: Hashable, Sendable {
        /// The system's authorities.
        case systemAuthorities
        /// The authorities in a PEM file.
        case authorities(file: String)
        /// Nobody: any certificate passes. For experiments only.
        case none
    }

    /// How long each step of an exchange may take, in seconds; nil for no limit.
    public struct Deadlines: Hashable, Sendable {
        /// Until the connection is made, TLS included.
        public var connectSeconds: Double?
        /// Until the head of the answer is there; a request's own limit goes before it.
        public var headSeconds: Double?
        /// Without a byte in the body, while the reader is waiting for one.
        public var idleSeconds: Double?
        /// Until the end of the body.
        public var totalSeconds: Double?

        /// Deadlines; the defaults suit an origin close by.
        public init(
            connectSeconds: Double? = 10,
            headSeconds: Double? = 60,
            idleSeconds: Double? = 60,
            totalSeconds: Double? = nil
        ) {
            self.connectSeconds = connectSeconds
            self.headSeconds = headSeconds
            self.idleSeconds = idleSeconds
            self.totalSeconds = totalSeconds
        }
    }

    /// How many connections there may be.
    public struct Connections: Hashable, Sendable {
        /// In use at once to one host.
        public var perHostMax: Int
        /// In use at once to all hosts together.
        public var totalMax: Int
        /// Kept open while idle.
        public var idleMax: Int

        /// Limits for one pool.
        public init(perHostMax: Int = 256, totalMax: Int = 1024, idleMax: Int = 256) {
            self.perHostMax = perHostMax
            self.totalMax = totalMax
            self.idleMax = idleMax
        }
    }

    /// How much of an answer is accepted.
    public struct Limits: Hashable, Sendable {
        /// Field lines in one head.
        public var fieldCountMax: Int
        /// Bytes in one head.
        public var headBytesMax: Int
        /// 1xx heads before the answer.
        public var informationalCountMax: Int
        /// Body bytes that wait for a slow reader, in each direction of one exchange.
        public var windowBytesMax: Int

        /// Limits for one answer.
        public init(
            fieldCountMax: Int = 512,
            headBytesMax: Int = 256 << 10,
            informationalCountMax: Int = 32,
            windowBytesMax: Int = 256 << 10
        ) {
            self.fieldCountMax = fieldCountMax
            self.headBytesMax = headBytesMax
            self.informationalCountMax = informationalCountMax
            self.windowBytesMax = windowBytesMax
        }
    }

    /// Which versions of HTTP are spoken.
    public var protocolVersion: ProtocolVersion
    /// Whom an origin's certificate must convince.
    public var verification: Verification
    /// How long each step may take.
    public var deadlines: Deadlines
    /// How many connections there may be.
    public var connections: Connections
    /// How much of an answer is accepted.
    public var limits: Limits
    /// The URL of a proxy, or nil for none; the environment is not asked.
    public var proxy: String?

    /// A configuration; the defaults verify certificates and use no proxy.
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
