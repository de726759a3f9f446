import CacheEngine
import CurlOrigin
import HTTPCaching

/// The parts of an absolute http or https URL, as offsets of its UTF-8 bytes.
///
/// The bytes of the path and query are not changed: the request must name the same resource as the
/// cache key, including dot segments and unusual escapes.
struct UpstreamURL: Hashable, Sendable {
    let isSecure: Bool
    /// The host without user information (RFC 9110 §4.2.4) and port; an IPv6 address has brackets.
    let host: Range<Int>
    let port: Int
    /// The path and query as the URL writes them; empty if it has neither.
    let target: Range<Int>

    /// Whether the port is the one that the scheme implies.
    var isDefaultPort: Bool { port == Self.defaultPort(isSecure) }

    /// Splits `url`; throws `requestInvalid` if no request can be sent to it.
    init(_ url: String) throws(CacheError) {
        let result = url.withByteRun { text in
            OriginURL.split(text).flatMap { Self.parts(of: $0, text) }
        }
        switch result {
        case .success(let url): self = url
        case .failure(let fault): throw fault.error(url)
        }
    }

    private init(_ url: OriginURL, host: Range<Int>, port: Int) {
        isSecure = url.isSecure
        self.host = host
        self.port = port
        target = url.target
    }

    private static func defaultPort(_ isSecure: Bool) -> Int { isSecure ? 443 : 80 }

    private static func parts(of url: OriginURL, _ text: ByteRun) -> Result<Self, OriginURL.Fault> {
        let range = url.authority
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
                ? .success(Self(url, host: host, port: defaultPort(url.isSecure)))
                : .failure(.malformedAuthority)
        }
        guard text[hostEnd] == .colon, let port = port(text[hostEnd + 1..<range.upperBound]) else {
            return .failure(.malformedAuthority)
        }
        return .success(Self(url, host: host, port: port))
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
