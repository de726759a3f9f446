package import CacheEngine
package import HTTPCaching

/// The parts of an absolute http or https URL, as offsets of its UTF-8 bytes.
///
/// The URL is cut by bytes, as the cache's key is: a combining mark joins the character before it,
/// which would hide the end of the host from a search by characters.
package struct OriginURL: Hashable, Sendable {
    package let isSecure: Bool
    /// Host and port, without user information (RFC 9110 §4.2.4); not empty.
    package let authority: Range<Int>
    /// The path and query as the URL writes them; empty if it has neither.
    package let target: Range<Int>

    package enum Fault: String, Error {
        case noScheme = "The URL is not an http or https URL"
        case tooLong = "The URL has more than 1048576 bytes"
        case control = "The URL contains a space or a control character; escape it"
        case noHost = "The URL has no host"
        case malformedAuthority = "The URL's host or port is invalid"

        /// The error for a request to `url`.
        package func error(_ url: String) -> CacheError {
            CacheError(.requestInvalid, detail: "\(rawValue): `\(PlainText.excerpt(url: url))`")
        }
    }

    /// The maximum length of a URL, longer than any server accepts.
    static let bytesMax = 1 << 20

    /// Splits a URL; its host and port are not examined.
    package static func split(_ text: ByteRun) -> Result<Self, Fault> {
        let isSecure = text.hasPrefix(lowercased: "https://")
        guard isSecure || text.hasPrefix(lowercased: "http://") else {
            return .failure(.noScheme)
        }
        guard text.count <= bytesMax else { return .failure(.tooLong) }
        let start = isSecure ? 8 : 7
        let end = text.index(of: .numberSign, from: start) ?? text.count
        guard text[start..<end].isVisible else { return .failure(.control) }
        var hostStart = start
        var targetStart = start
        while targetStart < end, !endsAuthority(text.buffer[targetStart]) {
            if text.buffer[targetStart] == 0x40 { hostStart = targetStart + 1 }
            targetStart += 1
        }
        guard hostStart < targetStart, text[hostStart] != .colon else { return .failure(.noHost) }
        return .success(
            Self(
                isSecure: isSecure,
                authority: hostStart..<targetStart,
                target: targetStart..<end
            )
        )
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == 0x2F || byte == 0x3F || byte == 0x5C
    }
}
