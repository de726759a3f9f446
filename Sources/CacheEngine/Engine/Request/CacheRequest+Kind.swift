import HTTPCaching

extension CacheRequest {
    /// Whether the key determines the response: GET and HEAD without content, and every request
    /// that has a key of the caller's own.
    ///
    /// The content of a GET has no meaning (RFC 9110 §9.3.1). A response of an origin that reads it
    /// must not be served to requests without content.
    var isAnsweredByKey: Bool {
        if !options.isUsual, options.key != nil { return true }
        switch method.kind {
        case .get, .head: break
        default: return false
        }
        if case .none = body { return true }
        return body?.count == 0
    }

    /// Whether it is a GET without conditions, ranges and directives.
    var isPlain: Bool {
        guard case .get = method.kind else { return false }
        return fields.areSilent
    }

    var urlWithoutFragment: String {
        guard let hash = url.utf8.firstIndex(of: UInt8(ascii: "#")) else { return url }
        return String(url[..<hash])
    }
}
