public import CacheEngine

/// What a gateway does to a message on its way, whatever server it runs in.
extension HeaderFields {
    /// The request's fields as they go on to the origin, with this gateway's name in `Via`.
    ///
    /// Left out is what belongs to the client's connection (RFC 9110 §7.6.1), what the framing of
    /// the next request says anew, and `Host`: the origin is asked under its own name, for only
    /// that name is part of the cache's key.
    public func forwarded(by name: String) -> HeaderFields {
        var kept = self
        for line in values("Connection") {
            for member in line.split(separator: ",") {
                let listed = member.filter { !$0.isWhitespace }.lowercased()
                if !Self.endToEnd.contains(listed) { kept.remove(listed) }
            }
        }
        for name in Self.ofConnection { kept.remove(name) }
        // HTTP/2 may have cut it into lines, which no comma can join (RFC 9113 §8.2.3).
        let cookies = kept.values("Cookie")
        if cookies.count > 1 { kept["Cookie"] = cookies.joined(separator: "; ") }
        kept.append("Via", "1.1 \(name)")
        return kept
    }

    private static let ofConnection = [
        "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization",
        "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ]

    /// What `Connection` may not list: a client must not be able to have these removed.
    private static let endToEnd: Set<String> = [
        "authorization", "cache-control", "content-encoding", "content-range", "content-type",
        "cookie", "pragma", "range",
    ]
}

extension CacheError {
    /// The status that tells a client of this failure (RFC 9110 §15.6).
    public var gatewayStatus: Int {
        switch code {
        case .requestInvalid: 400
        case .shutDown: 503
        case .originTimedOut, .deadlineExceeded, .notCached: 504
        default: 502
        }
    }
}
