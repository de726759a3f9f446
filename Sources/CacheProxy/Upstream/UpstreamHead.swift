import HTTPCaching

/// The head of a response from an origin, and the framing of the body after it.
struct UpstreamHead: Sendable {
    var status = 0
    /// The fields; unless this is a 1xx, they have at most one `Content-Length`, which is a plain
    /// number, and no `Content-Length` beside a transfer coding.
    var section = FieldSection()
    var framing = BodyFraming.none
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
