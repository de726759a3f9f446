import HTTPCaching

/// The head of a response from an origin, and the framing of the body behind it.
struct UpstreamHead: Sendable {
    /// How the body after the head is delimited (RFC 9112 §6.3).
    enum Framing: Hashable, Sendable {
        /// No body follows: a response to HEAD, a 1xx, a 204 or a 304.
        case none
        case length(Int)
        case chunked
        /// The body ends with the connection.
        case untilClose
    }

    var status = 0
    /// The fields; unless this is a 1xx, they have at most one `Content-Length`, which is a plain
    /// number, and no `Content-Length` beside a transfer coding.
    var section = FieldSection()
    var framing = Framing.none
    /// Whether the version is HTTP/1.0.
    var isOldVersion = false
    /// Whether both a length and a coding were given; the connection must not be used again.
    var isFramedTwice = false
    /// Whether `Connection` lists `close`.
    var wantsClose = false
    /// Whether `Connection` lists `keep-alive`.
    var wantsKeepAlive = false

    /// Whether another request may follow on the connection once the body ended (RFC 9112 §9.3).
    var mayPersist: Bool {
        if wantsClose || isFramedTwice || framing == .untilClose { return false }
        return !isOldVersion || wantsKeepAlive
    }
}
