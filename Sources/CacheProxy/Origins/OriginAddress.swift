/// An origin server: scheme and authority, without a path.
struct OriginAddress: Hashable, Sendable, CustomStringConvertible {
    /// The written form, `http://host:port`.
    let description: String

    /// Reads a URL; `nil` unless it is http or https with a host and without a path.
    init?(_ text: String) {
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

    /// Whether the scheme is `http`.
    var isPlain: Bool { description.hasPrefix("http://") }

    /// The same target at this origin.
    func url(for url: String) -> String {
        var url = url
        return url.withUTF8 { url in
            guard let schemeEnd = url.firstIndex(of: UInt8(ascii: ":")) else {
                return String(decoding: url, as: UTF8.self)
            }
            let rest = url.dropFirst(schemeEnd + 3)
            let path = rest.drop { $0 != 0x2F && $0 != 0x3F }
            var address = description
            return address.withUTF8 { address in
                String(unsafeUninitializedCapacity: address.count + path.count) { target in
                    _ = target.initialize(fromContentsOf: address)
                    _ = target[address.count...].initialize(fromContentsOf: path)
                    return address.count + path.count
                }
            }
        }
    }
}
