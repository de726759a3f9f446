/// How a server takes requests.
public struct ServerConfiguration: Hashable, Sendable {
    /// Where it listens.
    public var address: ListenAddress
    /// Event loops, each with a thread of its own.
    public var workers = 1
    /// The name in `Via`.
    public var name: String
    /// What a message may be.
    public var wire = WireLimits()
    /// How long a client may take for what.
    public var timeouts = Timeouts()
    /// Connections of one worker at one time; more wait in the kernel's queue.
    public var connectionsMax = 20_000
    /// Bytes of answers queued for one client before no more of its requests are read.
    public var queuedBytesMax = 256 * 1024
    /// Bytes of content nobody wants that are read to save a connection.
    public var discardedBytesMax = 256 * 1024
    /// Where requests are logged: a path, `-` for standard output, or nil for nowhere.
    public var accessLog: String?

    /// What becomes of a PURGE.
    public var purging = Purging.refused

    /// What becomes of a PURGE.
    public enum Purging: Hashable, Sendable {
        /// It is refused, and nobody hears of it.
        case refused
        /// It is a request like any other.
        case answered
    }

    /// How long a client may take for what, in milliseconds.
    public struct Timeouts: Hashable, Sendable {
        /// From the first byte of a head to its last; and for the first request of a connection.
        public var headMilliseconds: Int64 = 10_000
        /// Between requests.
        public var idleMilliseconds: Int64 = 60_000
        /// Between two pieces of a request's content.
        public var contentMilliseconds: Int64 = 30_000
        /// Without taking a byte of the answer.
        public var writeMilliseconds: Int64 = 60_000
        /// For the last bytes after an answer that ends the connection.
        public var lingerMilliseconds: Int64 = 2_000

        /// The usual times.
        public init() {}
    }

    /// A server at `address`, otherwise as usual.
    public init(address: ListenAddress, name: String) {
        self.address = address
        self.name = name
    }
}
