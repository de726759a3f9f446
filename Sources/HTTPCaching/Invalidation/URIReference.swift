/// The components of a URI or a relative reference, without its fragment (RFC 3986 §4.1).
///
/// Initialisation fails if the text contains a character that a URI must not contain.
public struct URIReference: Hashable, Sendable {
    public var scheme: String?
    /// `host` or `host:port`, including user information.
    public var authority: String?
    public var path: String
    public var query: String?

    /// A longer text is refused unread.
    public static let bytesMax = 65_536

    public init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax, text.utf8.allSatisfy(Self.isAllowed) else {
            return nil
        }
        var rest = Substring(text)
        if let hash = rest.firstIndex(of: "#") { rest = rest[..<hash] }
        if let mark = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let colon = rest.firstIndex(of: ":"), Self.isScheme(rest[..<colon]) {
            scheme = rest[..<colon].lowercased()
            rest = rest[rest.index(after: colon)...]
        }
        if rest.hasPrefix("//") {
            let start = rest.index(rest.startIndex, offsetBy: 2)
            let end = rest[start...].firstIndex(of: "/") ?? rest.endIndex
            guard Self.isAuthority(rest[start..<end]) else { return nil }
            authority = String(rest[start..<end])
            rest = rest[end...]
        }
        path = String(rest)
        // RFC 3986 §4.2: a colon in the first segment of a relative path would be a scheme.
        if scheme == nil, authority == nil, let first = path.split(separator: "/").first,
            !path.hasPrefix("/"), first.contains(":")
        {
            return nil
        }
    }

    /// Resolves the reference against `base` (RFC 3986 §5.2.2, strict).
    public func resolved(against base: URIReference) -> URIReference {
        var target = self
        if scheme != nil {
            target.path = Self.removingDotSegments(path)
            return target
        }
        target.scheme = base.scheme
        if authority != nil {
            target.path = Self.removingDotSegments(path)
            return target
        }
        target.authority = base.authority
        if path.isEmpty {
            target.path = base.path
            target.query = query ?? base.query
        } else if path.hasPrefix("/") {
            target.path = Self.removingDotSegments(path)
        } else {
            target.path = Self.removingDotSegments(Self.merged(path, base: base))
        }
        return target
    }

    /// The reference as text.
    ///
    /// Scheme and host are in lower case, a default port is left out, and an empty path becomes
    /// `/`: the minimum that makes equal targets equal (RFC 9110 §4.2.3). The path stays as it is,
    /// because its meaning is the origin's.
    public var target: String {
        var text = ""
        if let scheme { text += scheme + ":" }
        if authority != nil { text += "//" + normalizedAuthority }
        if authority == nil {
            // RFC 3986 §3.3: two slashes here would be read as the start of an authority.
            text += path.hasPrefix("//") ? "/." + path : path
        } else {
            text += path.isEmpty ? "/" : path
        }
        if let query { text += "?" + query }
        return text
    }

    /// Whether scheme, host and port are the same (RFC 6454); user information is ignored.
    public func hasSameOrigin(as other: URIReference) -> Bool {
        if Mutant.invalidatesOtherOrigins.isOn { return true }
        guard let scheme, scheme == other.scheme, authority != nil, other.authority != nil else {
            return false
        }
        return hostAndPort == other.hostAndPort
    }

    private var normalizedAuthority: String {
        guard let authority, let at = authority.lastIndex(of: "@") else { return hostAndPort }
        return authority[...at] + hostAndPort
    }

    private var hostAndPort: String {
        guard let authority else { return "" }
        let full = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] }
        let text = (full ?? Substring(authority)).lowercased()
        guard let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") else {
            return text
        }
        let port = text[text.index(after: colon)...]
        let isDefault =
            port.isEmpty || (scheme == "http" && port == "80")
            || (scheme == "https" && port == "443")
        return isDefault ? String(text[..<colon]) : text
    }

    private static func merged(_ path: String, base: URIReference) -> String {
        if base.authority != nil, base.path.isEmpty { return "/" + path }
        guard let slash = base.path.lastIndex(of: "/") else { return path }
        return base.path[...slash] + path
    }

    /// Removes dot segments (RFC 3986 §5.2.4).
    static func removingDotSegments(_ path: String) -> String {
        guard path.contains("/.") || path.hasPrefix(".") else { return path }
        let isAbsolute = path.hasPrefix("/")
        var segments = path.split(separator: "/", omittingEmptySubsequences: false)
        if isAbsolute { segments.removeFirst() }
        var kept: [Substring] = []
        for (position, segment) in segments.enumerated() {
            let isLast = position == segments.count - 1
            if segment == "." {
                if isLast { kept.append("") }
            } else if segment == ".." {
                if !kept.isEmpty { kept.removeLast() }
                if isLast { kept.append("") }
            } else {
                kept.append(segment)
            }
        }
        return (isAbsolute ? "/" : "") + kept.joined(separator: "/")
    }

    /// RFC 3986 §3.2: at most one `@`, a colon in the host only inside brackets, a port of digits.
    private static func isAuthority(_ text: Substring) -> Bool {
        var rest = text
        if let at = rest.firstIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        if rest.hasPrefix("[") {
            guard let close = rest.firstIndex(of: "]") else { return false }
            rest = rest[rest.index(after: close)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { return false }
        }
        guard !rest.contains(where: { "@[]".contains($0) }) else { return false }
        guard let colon = rest.firstIndex(of: ":") else { return true }
        return rest[rest.index(after: colon)...].utf8.allSatisfy { $0.isDigit }
    }

    private static func isScheme(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, first.isLetter else { return false }
        return text.utf8.allSatisfy {
            $0.isLetter || $0.isDigit || $0 == 0x2B || $0 == .hyphen || $0 == .dot
        }
    }

    /// No controls, spaces, quotes, angle brackets or backslashes.
    ///
    /// Other characters that RFC 3986 §2 excludes (braces, bars, bytes above ASCII) occur in
    /// practice and pass unchanged. The digits after a percent sign are not checked.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x00...0x20, 0x7F, 0x22, 0x3C, 0x3E, 0x5C: false
        default: true
        }
    }
}
