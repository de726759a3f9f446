package import HTTPCaching

/// The head of a response from an origin, and the framing of the body behind it.
package struct UpstreamHead: Sendable {
    /// How the body after the head is delimited (RFC 9112 §6.3).
    package enum Framing: Hashable, Sendable {
        /// No body follows: a response to HEAD, a 1xx, a 204 or a 304.
        case none
        case length(Int)
        case chunked
        /// The body ends with the connection.
        case untilClose
    }

    package internal(set) var status = 0
    /// The fields; unless this is a 1xx, they have at most one `Content-Length`, which is a plain
    /// number, and no `Content-Length` beside a transfer coding.
    package internal(set) var section = FieldSection()
    package internal(set) var framing = Framing.none
    /// Whether the version is HTTP/1.0.
    package internal(set) var isOldVersion = false
    /// Whether both a length and a coding were given; the connection must not be used again.
    package internal(set) var isFramedTwice = false
    /// Whether `Connection` lists `close`.
    package internal(set) var wantsClose = false
    /// Whether `Connection` lists `keep-alive`.
    package internal(set) var wantsKeepAlive = false

    package init() {}

    /// Whether another request may follow on the connection once the body ended (RFC 9112 §9.3).
    package var mayPersist: Bool {
        if wantsClose || isFramedTwice || framing == .untilClose { return false }
        return !isOldVersion || wantsKeepAlive
    }
}
