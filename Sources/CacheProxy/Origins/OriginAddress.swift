import HTTPCaching

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

    /// The address in lower case and without its default or empty port (RFC 9110 §4.2.3).
    var normalForm: String {
        let text = description.lowercased()
        let port = [isPlain ? ":80" : ":443", ":"].first { text.hasSuffix($0) } ?? ""
        return String(text.dropLast(port.count))
    }

    /// The value of `Host` that names this server.
    var hostField: String { String(normalForm.dropFirst((isPlain ? "http://" : "https://").count)) }

    /// The same target at this origin.
    func url(for url: String) -> String {
        url.withByteRun { url in
            guard let schemeEnd = url.index(of: .colon) else { return url.string }
            var start = min(schemeEnd + 3, url.count)
            while start < url.count, url[start] != .slash, url[start] != .questionMark {
                start += 1
            }
            let target = url[start..<url.count]
            return description.withByteRun { address in
                let count = address.count + target.count
                return String(unsafeUninitializedCapacity: count) { buffer in
                    let room = UnsafeMutableRawBufferPointer(buffer)
                    room.copyMemory(from: address.buffer)
                    UnsafeMutableRawBufferPointer(rebasing: room[address.count...])
                        .copyMemory(from: target.buffer)
                    return count
                }
            }
        }
    }
}
