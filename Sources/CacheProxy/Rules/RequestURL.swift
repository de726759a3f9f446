import HTTPCaching
import Platform

/// The absolute URL of a request, for the cache's key and for the origin.
///
/// Host names and schemes compare without case (RFC 9110 §4.2.3), and a default port equals no
/// port, so these are normalised, and the origin gets the normalised form too: what it cannot see
/// cannot change its response. Every byte after the authority stays as the client sent it: the
/// origin decides the meaning of escapes, dot segments and double slashes, and a key that merged
/// them could be made to answer one resource with another. A dot at the end of a host name stays
/// for the same reason.
struct RequestURL: Hashable, Sendable {
    let text: String
    /// The authority of the URL, if the request's Host field does not have it and must be replaced.
    let hostOverride: String?

    /// Reads a target of RFC 9112 §3.2, with the authority of `Host` or of the listener.
    ///
    /// `scheme` is the scheme of the client's connection if it is known. It replaces the scheme of an
    /// absolute target, which is only the client's claim.
    static func make(
        _ head: RequestHead,
        _ bytes: UnsafeRawBufferPointer,
        defaultAuthority: String,
        scheme: RequestScheme? = nil
    ) -> Result<RequestURL, RequestFault> {
        var target = UnsafeRawBufferPointer(rebasing: bytes[head.target])
        let isForServer = head.methodKind == .options
        if target[0] != 0x2F {
            guard isForServer, target.count == 1, target[0] == 0x2A else {
                // The target replaces the field's value (RFC 9112 §3.2.2), not its check (§3.2).
                if let host = head.host, !host.isEmpty,
                    normalizedEnd(.init(rebasing: bytes[host]), defaultPort: "") == nil
                {
                    return .failure(.malformedHost)
                }
                return absoluteForm(target, isForServer: isForServer, scheme)
            }
            // RFC 9112 §3.2.4: a URL without a path stands for the server as a whole.
            target = UnsafeRawBufferPointer(rebasing: target[1...])
        }
        return originForm(
            target,
            of: head,
            in: bytes,
            defaultAuthority: defaultAuthority,
            scheme: scheme ?? .http
        )
    }

    private static func originForm(
        _ target: UnsafeRawBufferPointer,
        of head: RequestHead,
        in bytes: UnsafeRawBufferPointer,
        defaultAuthority: String,
        scheme: RequestScheme
    ) -> Result<RequestURL, RequestFault> {
        let url: RequestURL?
        if let host = head.host {
            let authority = UnsafeRawBufferPointer(rebasing: bytes[host])
            url = normalized(scheme, authority: authority, target: target, isHostField: true)
        } else {
            var authority = defaultAuthority
            url = authority.withUTF8 {
                normalized(
                    scheme,
                    authority: UnsafeRawBufferPointer($0),
                    target: target,
                    isHostField: false
                )
            }
        }
        guard let url else { return .failure(.malformedHost) }
        return .success(url)
    }

    /// `isForServer`: a missing path stands for the server as a whole, not for its root.
    private static func absoluteForm(
        _ target: UnsafeRawBufferPointer,
        isForServer: Bool,
        _ known: RequestScheme?
    ) -> Result<RequestURL, RequestFault> {
        let claimed = RequestScheme.allCases.first { hasPrefix(target, $0.prefix) }
        guard let claimed else { return .failure(.malformedTarget) }
        let scheme = known ?? claimed
        let rest = UnsafeRawBufferPointer(rebasing: target[claimed.prefix.utf8CodeUnitCount...])
        let authorityEnd = rest.firstIndex { $0 == 0x2F || $0 == 0x3F } ?? rest.count
        let authority = UnsafeRawBufferPointer(rebasing: rest[..<authorityEnd])
        var path = UnsafeRawBufferPointer(rebasing: rest[authorityEnd...])
        if path.isEmpty, !isForServer { path = root }
        guard authority.allSatisfy(ByteClass.isAuthority),
            let url = normalized(scheme, authority: authority, target: path, isHostField: false)
        else { return .failure(.malformedTarget) }
        return .success(url)
    }

    /// The URL with the normal form of its authority; `nil` if that is malformed.
    ///
    /// `isHostField`: the request's Host field is this authority.
    private static func normalized(
        _ scheme: RequestScheme,
        authority: UnsafeRawBufferPointer,
        target: UnsafeRawBufferPointer,
        isHostField: Bool
    ) -> RequestURL? {
        guard let end = normalizedEnd(authority, defaultPort: scheme.port) else { return nil }
        let host = UnsafeRawBufferPointer(rebasing: authority[..<end])
        let hasUpper = host.contains(where: isUpper)
        let text = join(scheme.prefix, authority: host, lowercasing: hasUpper, target: target)
        let isNormal = end == authority.count && !hasUpper
        if isHostField, isNormal || Mutant.sendsHostAsWritten.isOn {
            return RequestURL(text: text, hostOverride: nil)
        }
        let written = text.utf8.dropFirst(scheme.prefix.utf8CodeUnitCount).prefix(end)
        return RequestURL(text: text, hostOverride: String(decoding: written, as: UTF8.self))
    }

    private static func isUpper(_ byte: UInt8) -> Bool { byte >= 0x41 && byte <= 0x5A }

    /// Whether `text` is a host, with or without a port, in the form of RFC 3986 §3.2.
    static func isAuthority(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { utf8 in
            let bytes = UnsafeRawBufferPointer(utf8)
            return bytes.allSatisfy(ByteClass.isAuthority)
                && normalizedEnd(bytes, defaultPort: "") != nil
        }
    }

    /// The end of an authority without its default or empty port; `nil` if it is malformed.
    private static func normalizedEnd(
        _ authority: UnsafeRawBufferPointer,
        defaultPort: StaticString
    ) -> Int? {
        guard !authority.isEmpty else { return nil }
        guard let hostEnd = hostEnd(authority) else { return nil }
        guard hostEnd < authority.count else { return hostEnd }
        let port = UnsafeRawBufferPointer(rebasing: authority[(hostEnd + 1)...])
        guard hostEnd > 0, port.count <= 5, port.allSatisfy(ByteClass.isDigit),
            port.reduce(0, { $0 * 10 + Int($1 & 0xF) }) <= 65_535
        else { return nil }
        return port.isEmpty || RequestParser.equals(port, defaultPort) ? hostEnd : authority.count
    }

    /// The place of the colon after the host, or the end; `nil` if the host is malformed.
    private static func hostEnd(_ authority: UnsafeRawBufferPointer) -> Int? {
        if authority[0] == 0x5B {
            guard let bracket = authority.firstIndex(of: 0x5D),
                isVersionSix(.init(rebasing: authority[1..<bracket]))
            else { return nil }
            let end = bracket + 1
            return end == authority.count || authority[end] == 0x3A ? end : nil
        }
        var end = 0
        while end < authority.count {
            switch authority[end] {
            case 0x3A: return end
            case 0x5B, 0x5D: return nil
            case 0x25: if !isEscape(authority, at: end) { return nil }
            default: break
            }
            end += 1
        }
        return end
    }

    /// RFC 3986 §2.1: a percent sign and two hexadecimal digits.
    private static func isEscape(_ text: UnsafeRawBufferPointer, at index: Int) -> Bool {
        guard index + 2 < text.count else { return false }
        return (index + 1...index + 2).allSatisfy { place in
            let folded = text[place] | 0x20
            return ByteClass.isDigit(text[place]) || folded >= 0x61 && folded <= 0x66
        }
    }

    /// RFC 3986 §3.2.2; later address versions and zones are refused.
    private static func isVersionSix(_ text: UnsafeRawBufferPointer) -> Bool {
        var address = in6_addr()
        return text.count >= 2 && text.count < Int(INET6_ADDRSTRLEN)
            && inet_pton(AF_INET6, String(decoding: text, as: UTF8.self), &address) == 1
    }

    private static func hasPrefix(_ text: UnsafeRawBufferPointer, _ prefix: StaticString) -> Bool {
        let count = prefix.utf8CodeUnitCount
        guard text.count > count else { return false }
        return RequestParser.equals(.init(rebasing: text[..<count]), prefix)
    }

    private static var root: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: ("/" as StaticString).utf8Start, count: 1)
    }

    /// Writes the authority, in lower case, and a slash before a query without a path.
    private static func join(
        _ scheme: StaticString,
        authority: UnsafeRawBufferPointer,
        lowercasing: Bool,
        target: UnsafeRawBufferPointer
    ) -> String {
        let needsSlash = !target.isEmpty && target[0] != 0x2F
        let count = scheme.utf8CodeUnitCount + authority.count + target.count + (needsSlash ? 1 : 0)
        return String(unsafeUninitializedCapacity: count) { buffer in
            let out = UnsafeMutableRawBufferPointer(buffer)
            var position = scheme.utf8CodeUnitCount
            out.copyMemory(from: .init(start: scheme.utf8Start, count: position))
            let end = position + authority.count
            let host = UnsafeMutableRawBufferPointer(rebasing: out[position..<end])
            host.copyMemory(from: authority)
            if lowercasing {
                for place in host.indices where isUpper(host[place]) { host[place] |= 0x20 }
            }
            position = end
            if needsSlash {
                out[position] = 0x2F
                position += 1
            }
            UnsafeMutableRawBufferPointer(rebasing: out[position...]).copyMemory(from: target)
            return count
        }
    }
}
