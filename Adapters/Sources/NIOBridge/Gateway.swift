public import CacheEngine

/// The rules by which a gateway forwards fields, independent of the server.
extension HeaderFields {
    /// Returns the fields of a request to the origin, with this gateway's name in `Via`.
    ///
    /// The fields of the client's connection (RFC 9110 §7.6.1) and those of the framing are
    /// removed. `Host` is removed too: the origin is addressed by its own name, because the cache's
    /// key contains only that name. So are names that an origin may take for others (decision 0067
    /// of the engine).
    public func forwarded(by name: String) -> HeaderFields {
        var kept = self
        for line in values("Connection") {
            for member in line.split(separator: ",") {
                let listed = member.filter { !$0.isWhitespace }.lowercased()
                if !Self.isEndToEnd(listed) { kept.remove(listed) }
            }
        }
        for name in Self.ofConnection { kept.remove(name) }
        for (name, _) in pairs where !name.utf8.allSatisfy(Self.isPlain) { kept.remove(name) }
        // HTTP/2 may have split the field into lines, which a comma must not join (RFC 9113
        // §8.2.3).
        let cookies = kept.values("Cookie")
        if cookies.count > 1 { kept["Cookie"] = cookies.joined(separator: "; ") }
        kept.append("Via", "1.1 \(name)")
        return kept
    }

    /// Returns the fields without those of `names`.
    public func without(_ names: [String]) -> HeaderFields {
        var kept = self
        for name in names { kept.remove(name) }
        return kept
    }

    /// The authority that `Host` names, in the form of the cache's key for `http`: in lower case and
    /// without the default port.
    ///
    /// `nil` unless there is one field, with a host or with host and port: another byte could end
    /// the authority of a URL, whose path would then be the client's choice (RFC 9112 §3.2).
    public var hostAuthority: String? {
        let hosts = values("Host")
        guard hosts.count == 1, let host = hosts.first, host.utf8.allSatisfy(Self.isAuthority)
        else { return nil }
        let authority = host.lowercased()
        let end = [":80", ":"].first { authority.hasSuffix($0) } ?? ""
        let short = authority.dropLast(end.count)
        // A second port would go from the key, and stay in the routes' `Host`.
        guard !short.isEmpty, !short.hasSuffix(":"), !short.hasSuffix(":80") else { return nil }
        return String(short)
    }

    fileprivate static func isAuthority(_ byte: UInt8) -> Bool {
        isPlain(byte) || "._~%!$&'()*+,;=:[]".utf8.contains(byte)
    }

    /// Whether the byte is a letter, a digit or a hyphen.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    private static let ofConnection = [
        "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization",
        "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ]

    /// Whether a client cannot remove the field by a mention in `Connection` (decision 0016 of the
    /// engine); `name` is in lower case.
    private static func isEndToEnd(_ name: String) -> Bool {
        endToEnd.contains(name) || name.hasPrefix("x-forwarded-")
            || name.hasSuffix("-cache-control")
    }

    private static let endToEnd: Set<String> = [
        // They describe the message and the users that may see it.
        "age", "authorization", "cache-control", "content-encoding", "content-length",
        "content-range", "content-type", "cookie", "date", "etag", "expires", "host",
        "last-modified", "pragma", "range", "vary",
        // They tell the way of the message.
        "cdn-loop", "early-data", "forwarded", "via", "x-real-ip",
    ]
}

/// The server that a gateway asks: a scheme and an authority, which a client's path follows.
public struct Upstream: Sendable, CustomStringConvertible {
    /// The scheme and the authority, without a slash at the end.
    public let description: String

    /// Creates an upstream from `text`, such as `http://127.0.0.1:3000`.
    ///
    /// A slash at the end is dropped.
    ///
    /// - Throws: `CacheError.Code.configurationInvalid` if `text` has another scheme, no host, a
    ///   port beyond 65535, a user, a path or a query.
    public init(_ text: String) throws(CacheError) {
        let origin = text.utf8.last == UInt8(ascii: "/") ? text.utf8.dropLast() : text.utf8[...]
        let scheme = origin.prefix { $0 != UInt8(ascii: ":") }
        let rest = origin[scheme.endIndex...]
        let slashes = "://".utf8
        let name = String(Substring(scheme)).lowercased()
        guard name == "http" || name == "https", rest.starts(with: slashes),
            Self.isServer(rest.dropFirst(slashes.count))
        else {
            let shown = CacheRequest(url: text).urlWithoutSecrets
            let remedy = "give http:// or https:// with a host and perhaps a port, and no path"
            throw CacheError(
                .configurationInvalid,
                detail: "The upstream `\(shown)` is invalid; \(remedy)"
            )
        }
        description = String(Substring(origin))
    }

    /// Whether the bytes are a host, or a host and a port from 1 to 65535.
    private static func isServer(_ authority: Substring.UTF8View) -> Bool {
        let brackets = "[]".utf8
        let isNumeric = authority.first == brackets.first
        // The colons of a numeric address stand in brackets.
        let end =
            isNumeric
            ? authority.firstIndex(of: UInt8(ascii: "]")).map(authority.index(after:))
            : authority.firstIndex(of: UInt8(ascii: ":"))
        let host = authority[..<(end ?? authority.endIndex)]
        let name = isNumeric ? host.dropFirst().dropLast() : host
        guard !name.isEmpty, !name.contains(where: brackets.contains), !isNumeric || end != nil,
            name.allSatisfy(HeaderFields.isAuthority)
        else { return false }
        let port = authority[host.endIndex...]
        guard let colon = port.first else { return true }
        let digits = port.dropFirst()
        return colon == UInt8(ascii: ":") && digits.first != UInt8(ascii: "+")
            && UInt16(Substring(digits)) ?? 0 > 0
    }
}

extension CacheError {
    /// The status that reports this error to a client (RFC 9110 §15.6).
    public var gatewayStatus: Int {
        switch code {
        case .requestInvalid: 400
        case .shutDown: 503
        case .originTimedOut, .deadlineExceeded, .notCached: 504
        default: 502
        }
    }
}
