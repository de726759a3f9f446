/// How the body after a head is delimited (RFC 9112 §6.3).
enum BodyFraming: Hashable, Sendable {
    /// No body follows: a request without content, a response to HEAD, a 1xx, a 204 or a 304.
    case none
    case length(Int)
    case chunked
    /// The body of a response that ends with the connection.
    case untilClose
}
