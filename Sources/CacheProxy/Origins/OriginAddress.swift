/// An origin server: scheme and authority, without a path.
public struct OriginAddress: Hashable, Sendable, CustomStringConvertible {
    /// The written form, `http://host:port`.
    public let description: String

    /// Reads a URL; `nil` unless it is http or https with a host and without a path.
    public init?(_ text: String) {
        var text = text
        if text.hasSuffix("/") { text.removeLast() }
        for scheme in ["http://", "https://"] where text.lowercased().hasPrefix(scheme) {
            let authority = text.dropFirst(scheme.count)
            guard !authority.isEmpty, authority.utf8.allSatisfy(ByteClass.isAuthority),
                authority.first != ":"
            else { return nil }
            description = scheme + authority
            return
        }
        return nil
    }

    /// The same target at this origin.
    func url(for url: String) -> String {
        guard let schemeEnd = url.utf8.firstIndex(of: UInt8(ascii: ":")) else { return url }
        let start = url.utf8.index(schemeEnd, offsetBy: 3, limitedBy: url.utf8.endIndex)
        let rest = url[(start ?? url.utf8.endIndex)...]
        let path = rest.utf8.firstIndex { $0 == 0x2F || $0 == 0x3F } ?? rest.utf8.endIndex
        return description + rest[path...]
    }
}
