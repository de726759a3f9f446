package import CacheEngine
import HTTPCaching

/// The parts of an absolute http or https URL, as offsets of its UTF-8 bytes.
///
/// The bytes of the path and query are not changed: the request must name the same resource as the
/// cache key, including dot segments and unusual escapes.
package struct UpstreamURL: Hashable, Sendable {
    package let isSecure: Bool
    /// The host without user information (RFC 9110 §4.2.4) and port; an IPv6 address has brackets.
    package let host: Range<Int>
    package let port: Int
    /// The path and query as the URL writes them; empty if it has neither.
    package let target: Range<Int>

    /// Whether the port is the one that the scheme implies.
    package var isDefaultPort: Bool { port == Self.defaultPort(isSecure) }

    /// Splits `url`; throws `requestInvalid` if no request can be sent to it.
    package init(_ url: String) throws(CacheError) {
        let result = url.withByteRun { text in Self.split(text) }
        switch result {
        case .success(let url): self = url
        case .failure(let fault):
            throw CacheError(
                .requestInvalid,
                detail: "\(fault.rawValue): `\(PlainText.excerpt(url))`"
            )
        }
    }

    private init(isSecure: Bool, host: Range<Int>, port: Int, target: Range<Int>) {
        self.isSecure = isSecure
        self.host = host
        self.port = port
        self.target = target
    }

    private enum Fault: String, Error {
        case noScheme = "The URL is not an http or https URL"
        case tooLong = "The URL has more than 1048576 bytes"
        case control = "The URL contains a space or a control character; escape it"
        case noHost = "The URL has no host"
        case malformedAuthority = "The URL's host or port is invalid"
    }

    /// The maximum length of a URL, longer than any server accepts.
    private static let bytesMax = 1 << 20

    private static func defaultPort(_ isSecure: Bool) -> Int { isSecure ? 443 : 80 }

    private static func split(_ text: ByteRun) -> Result<Self, Fault> {
        guard let colon = text.index(of: .colon), text.count >= colon + 3,
            text[colon..<colon + 3].equals(exactly: "://")
        else { return .failure(.noScheme) }
        let isSecure = text[0..<colon].equals(lowercased: "https")
        guard isSecure || text[0..<colon].equals(lowercased: "http") else {
            return .failure(.noScheme)
        }
        guard text.count <= bytesMax else { return .failure(.tooLong) }
        let start = colon + 3
        var end = start
        var authorityEnd: Int?
        while end < text.count, text.buffer[end] != 0x23 {
            let byte = text.buffer[end]
            guard byte > 0x20, byte != 0x7F else { return .failure(.control) }
            let endsAuthority = byte == 0x2F || byte == 0x3F || byte == 0x5C
            if endsAuthority, authorityEnd == nil { authorityEnd = end }
            end += 1
        }
        let targetStart = authorityEnd ?? end
        var hostStart = start
        for index in start..<targetStart where text.buffer[index] == 0x40 { hostStart = index + 1 }
        return authority(text, hostStart..<targetStart, isSecure: isSecure).map { place in
            Self(
                isSecure: isSecure,
                host: place.host,
                port: place.port,
                target: targetStart..<end
            )
        }
    }

    private static func authority(
        _ text: ByteRun,
        _ range: Range<Int>,
        isSecure: Bool
    ) -> Result<(host: Range<Int>, port: Int), Fault> {
        guard !range.isEmpty, text[range.lowerBound] != .colon else { return .failure(.noHost) }
        var hostEnd = range.lowerBound
        if text[hostEnd] == 0x5B {
            guard let bracket = text.index(of: 0x5D, from: hostEnd), bracket < range.upperBound
            else { return .failure(.malformedAuthority) }
            hostEnd = bracket + 1
        } else {
            while hostEnd < range.upperBound, text.buffer[hostEnd] != 0x3A { hostEnd += 1 }
        }
        for index in range.lowerBound..<hostEnd where !ByteClass.isAuthority(text.buffer[index]) {
            return .failure(.malformedAuthority)
        }
        let host = range.lowerBound..<hostEnd
        // A colon without a port names the default port (RFC 3986 §3.2.3).
        if range.upperBound - hostEnd <= 1 {
            let hasEnd = hostEnd == range.upperBound || text[hostEnd] == .colon
            return hasEnd
                ? .success((host, defaultPort(isSecure))) : .failure(.malformedAuthority)
        }
        guard text[hostEnd] == .colon, let port = port(text[hostEnd + 1..<range.upperBound]) else {
            return .failure(.malformedAuthority)
        }
        return .success((host, port))
    }

    private static func port(_ digits: ByteRun) -> Int? {
        var port = 0
        for index in 0..<digits.count {
            guard digits[index].isDigit else { return nil }
            port = port * 10 + Int(digits[index] - .zero)
            guard port <= 65_535 else { return nil }
        }
        return port > 0 ? port : nil
    }
}

extension UpstreamURL {
    /// The host as the URL `text` spells it.
    func hostText(in text: String) -> String {
        text.withByteRun { String(decoding: $0[host].buffer, as: UTF8.self) }
    }
}
