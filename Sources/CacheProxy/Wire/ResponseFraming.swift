import CacheEngine

/// How the end of a response's content is marked (RFC 9112 §6.3).
enum ResponseFraming: Hashable, Sendable {
    /// No content; a Content-Length can only be the origin's own.
    case none
    /// Content-Length, and exactly that many bytes.
    case length(Int)
    case chunked
    /// The end of the connection, for HTTP/1.0 clients.
    case untilClose

    init(status: Int, isHead: Bool, bodyCount: Int?, isOldVersion: Bool) {
        if isHead || status < 200 || status == 204 || status == 304 {
            self = .none
        } else if let bodyCount {
            self = .length(bodyCount)
        } else {
            self = isOldVersion ? .untilClose : .chunked
        }
    }
}
