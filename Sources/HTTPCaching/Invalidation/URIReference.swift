/// The components of a URI or a relative reference, without its fragment (RFC 3986 §4.1).
///
/// Initialisation fails if the text contains a character that a URI must not contain.
///
/// It is cut at scalars: a delimiter and the marks that combine with it are one character.
public struct URIReference: Hashable, Sendable {
    private typealias Scalars = Substring.UnicodeScalarView

    public var scheme: String?
    /// `host` or `host:port`, including user information.
    public var authority: String?
    public var path: String
    public var query: String?

    /// A longer text is refused unread.
    public static let bytesMax = 65_536

    /// The two slashes before an authority.
    private static let authorityMark = "//".unicodeScalars

    public init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax, text.utf8.allSatisfy(Self.isAllowed) else {
            return nil
        }
        var rest = text.unicodeScalars[...]
        if let hash = rest.firstIndex(of: "#") { rest = rest[..<hash] }
        if let mark = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let colon = rest.firstIndex(of: ":"), Self.isScheme(rest[..<colon]) {
            scheme = String(rest[..<colon]).lowercased()
            rest = rest[rest.index(after: colon)...]
        }
        if rest.starts(with: Self.authorityMark) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: "/") ?? rest.endIndex
            guard Self.isAuthority(rest[..<end]) else { return nil }
            authority = String(rest[..<end])
            rest = rest[end...]
        }
        path = String(rest)
        // RFC 3986 §4.2: a colon in the first segment of a relative path would be a scheme.
        if scheme == nil, authority == nil, rest.first != "/",
            rest.prefix(while: { $0 != "/" }).contains(":")
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
        } else if Self.isAbsolute(path) {
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
            text += path.unicodeScalars.starts(with: Self.authorityMark) ? "/." + path : path
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
        guard let authority, let at = authority.unicodeScalars.lastIndex(of: "@") else {
            return hostAndPort
        }
        return String(authority.unicodeScalars[...at]) + hostAndPort
    }

    private var hostAndPort: String {
        guard let authority else { return "" }
        let host = Self.withoutUser(authority.unicodeScalars[...])
        let text = String(host).lowercased().unicodeScalars
        guard let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") else {
            return String(text)
        }
        let port = String(text[colon...].dropFirst())
        let isDefault =
            port.isEmpty || (scheme == "http" && port == "80")
            || (scheme == "https" && port == "443")
        return String(isDefault ? text[..<colon] : text[...])
    }

    private static func isAbsolute(_ path: String) -> Bool { path.utf8.first == .slash }

    private static func merged(_ path: String, base: URIReference) -> String {
        if base.authority != nil, base.path.isEmpty { return "/" + path }
        guard let slash = base.path.unicodeScalars.lastIndex(of: "/") else { return path }
        return String(base.path.unicodeScalars[...slash]) + path
    }

    /// Removes dot segments (RFC 3986 §5.2.4).
    static func removingDotSegments(_ path: String) -> String {
        var segments = path.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false)
        let isAbsolute = Self.isAbsolute(path)
        if isAbsolute { segments.removeFirst() }
        var kept: [Scalars] = []
        for (position, segment) in segments.enumerated() {
            let isLast = position == segments.count - 1
            if segment.elementsEqual(".".unicodeScalars) {
                if isLast { kept.append(Scalars()) }
            } else if segment.elementsEqual("..".unicodeScalars) {
                if !kept.isEmpty { kept.removeLast() }
                if isLast { kept.append(Scalars()) }
            } else {
                kept.append(segment)
            }
        }
        return (isAbsolute ? "/" : "") + kept.map { String($0) }.joined(separator: "/")
    }

    /// The authority without user information.
    private static func withoutUser(_ authority: Scalars) -> Scalars {
        guard let at = authority.lastIndex(of: "@") else { return authority }
        return authority[at...].dropFirst()
    }

    /// RFC 3986 §3.2: at most one `@`, a colon in the host only inside brackets, a port of digits.
    private static func isAuthority(_ text: Scalars) -> Bool {
        var rest = text
        if let at = rest.firstIndex(of: "@") { rest = rest[at...].dropFirst() }
        if rest.first == "[" {
            guard let close = rest.firstIndex(of: "]") else { return false }
            rest = rest[close...].dropFirst()
            guard rest.isEmpty || rest.first == ":" else { return false }
        }
        guard !rest.contains(where: { "@[]".unicodeScalars.contains($0) }) else { return false }
        guard let colon = rest.firstIndex(of: ":") else { return true }
        return rest[colon...].dropFirst().allSatisfy { ("0"..."9").contains($0) }
    }

    private static func isScheme(_ text: Scalars) -> Bool {
        let bytes = Substring(text).utf8
        guard let first = bytes.first, first.isLetter else { return false }
        return bytes.allSatisfy {
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
