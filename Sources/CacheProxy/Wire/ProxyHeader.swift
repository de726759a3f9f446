/// The client of a connection, as the PROXY header of the proxy in front states it.
///
/// Source: "The PROXY protocol, versions 1 & 2", https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt
enum ProxyHeader: Hashable, Sendable {
    /// The proxy in front speaks for itself, as in a health check, or does not know its client
    /// (`LOCAL`, `UNKNOWN`): the socket's own address counts.
    case sender
    /// A client; without an address if it came over a socket in the file system.
    case client(address: IPAddress?, scheme: RequestScheme)
}

/// Why a connection ends at its PROXY header.
enum ProxyHeaderFault: Error, Hashable, Sendable, CaseIterable {
    case missing
    case lineMalformed
    case lineTooLong
    case versionUnknown
    case familyUnknown
    case tooLong
    case addressMissing
    case extensionMalformed
    /// The connection ended inside the header.
    case cut
    case late

    var text: String {
        switch self {
        case .missing: "the PROXY header is missing"
        case .lineMalformed: "the line of the PROXY header is malformed"
        case .lineTooLong:
            "the line of the PROXY header has more than \(ProxyHeaderParser.lineBytesMax) bytes"
        case .versionUnknown: "the PROXY header has an unknown version or command"
        case .familyUnknown: "the PROXY header has an unknown address family"
        case .tooLong: "the PROXY header has more than \(ProxyHeaderParser.bytesMax) bytes"
        case .addressMissing: "the PROXY header is too short for its addresses"
        case .extensionMalformed: "an extension of the PROXY header is malformed"
        case .cut: "the PROXY header ends early"
        case .late: "the PROXY header is not complete within --head-timeout"
        }
    }
}

/// Parses a PROXY header of version 1 or 2.
///
/// A pure function of the bytes that have arrived, from the first one on; they are few enough to
/// be read again with every piece. A fault of some bytes is the same fault with more bytes behind
/// them, so the result does not depend on how the bytes are split.
///
/// The scheme is `https` if the extension `PP2_TYPE_SSL` says that the client came over TLS. A
/// header without that extension, as every one of version 1, cannot say so: there the client's
/// destination port decides, 443 for `https`.
enum ProxyHeaderParser {
    enum Step: Hashable, Sendable {
        case needsMore
        /// The header ends before this offset.
        case complete(ProxyHeader, Int)
        case refused(ProxyHeaderFault)
    }

    /// Bytes of a line of version 1, its end included (§2.1).
    static let lineBytesMax = 107
    /// Bytes of a header of version 2: four times as many as §2.2 expects to be needed at most.
    static let bytesMax = 4_096

    /// `PROXY ` and the signature of version 2: no request begins with either.
    private static let lineStart = Array("PROXY ".utf8)
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]
    private static let fixedBytes = 16

    static func parse(_ bytes: UnsafeRawBufferPointer) -> Step {
        guard let first = bytes.first else { return .needsMore }
        let isBinary = first == signature[0]
        let start = isBinary ? signature : lineStart
        guard bytes.prefix(start.count).elementsEqual(start.prefix(bytes.count)) else {
            return .refused(.missing)
        }
        return isBinary ? parseBinary(bytes) : parseLine(bytes)
    }

    private static func scheme(port: UInt16) -> RequestScheme { port == 443 ? .https : .http }
}

// MARK: - Version 1

extension ProxyHeaderParser {
    private static func parseLine(_ bytes: UnsafeRawBufferPointer) -> Step {
        guard let end = bytes.prefix(lineBytesMax).firstIndex(of: 0x0A) else {
            return bytes.count < lineBytesMax ? .needsMore : .refused(.lineTooLong)
        }
        guard bytes[end - 1] == 0x0D else { return .refused(.lineMalformed) }
        let words = bytes[..<(end - 1)].split(separator: 0x20, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        // §2.1: the rest of such a line has no meaning.
        if words[1] == "UNKNOWN" { return .complete(.sender, end + 1) }
        guard words.count == 6, let isFour = ["TCP4": true, "TCP6": false][words[1]],
            let source = address(words[2], isFour: isFour),
            address(words[3], isFour: isFour) != nil,
            port(words[4]) != nil, let destination = port(words[5])
        else { return .refused(.lineMalformed) }
        let client = ProxyHeader.client(address: source, scheme: scheme(port: destination))
        return .complete(client, end + 1)
    }

    private static func address(_ text: String, isFour: Bool) -> IPAddress? {
        text.contains(":") == isFour ? nil : IPAddress(text)
    }

    /// Decimal digits without a leading zero.
    private static func port(_ text: String) -> UInt16? {
        guard text.utf8.allSatisfy(ByteClass.isDigit), text == "0" || !text.hasPrefix("0") else {
            return nil
        }
        return UInt16(text)
    }
}

// MARK: - Version 2

extension ProxyHeaderParser {
    private enum Family: UInt8 {
        case unspecified
        case versionFour
        case versionSix
        case unix

        /// Bytes of both addresses and ports.
        var bytes: Int {
            switch self {
            case .unspecified: 0
            case .versionFour: 12
            case .versionSix: 36
            case .unix: 216
            }
        }
    }

    private static func parseBinary(_ bytes: UnsafeRawBufferPointer) -> Step {
        guard bytes.count > 12 else { return .needsMore }
        let (version, command) = (bytes[12] >> 4, bytes[12] & 0xF)
        guard version == 2, command <= 1 else { return .refused(.versionUnknown) }
        let isLocal = command == 0
        guard bytes.count > 13 else { return .needsMore }
        // A local header's family has no meaning (§2.2).
        let family = isLocal ? Family.unspecified : Family(rawValue: bytes[13] >> 4)
        guard let family, isLocal || bytes[13] & 0xF <= 2 else { return .refused(.familyUnknown) }
        guard bytes.count >= fixedBytes else { return .needsMore }
        let end = fixedBytes + Int(number(bytes, at: 14))
        guard end <= bytesMax else { return .refused(.tooLong) }
        guard end >= fixedBytes + family.bytes else { return .refused(.addressMissing) }
        guard bytes.count >= end else { return .needsMore }
        if isLocal { return .complete(.sender, end) }
        let isSecure: Bool?
        switch securityExtension(bytes, from: fixedBytes + family.bytes, to: end) {
        case .success(let found): isSecure = found
        case .failure(let fault): return .refused(fault)
        }
        return .complete(header(bytes, family, isSecure: isSecure), end)
    }

    private static func header(
        _ bytes: UnsafeRawBufferPointer,
        _ family: Family,
        isSecure: Bool?
    ) -> ProxyHeader {
        let told = isSecure.map { $0 ? RequestScheme.https : .http }
        switch family {
        case .unspecified: return .sender
        case .unix: return .client(address: nil, scheme: told ?? .http)
        case .versionFour:
            let bits = UInt32(number(bytes, at: 16)) << 16 | UInt32(number(bytes, at: 18))
            let port = number(bytes, at: 26)
            return .client(
                address: IPAddress(versionFour: bits),
                scheme: told ?? scheme(port: port)
            )
        case .versionSix:
            let source = UnsafeRawBufferPointer(rebasing: bytes[16..<32])
            let port = number(bytes, at: 50)
            return .client(
                address: IPAddress(versionSix: source),
                scheme: told ?? scheme(port: port)
            )
        }
    }

    /// Whether the client came over TLS; `nil` if no extension says so (§2.2.6).
    private static func securityExtension(
        _ bytes: UnsafeRawBufferPointer,
        from start: Int,
        to end: Int
    ) -> Result<Bool?, ProxyHeaderFault> {
        let securityType: UInt8 = 0x20
        var isSecure: Bool?
        var index = start
        while index < end {
            guard index + 3 <= end else { return .failure(.extensionMalformed) }
            let value = index + 3
            let next = value + Int(number(bytes, at: index + 1))
            guard next <= end else { return .failure(.extensionMalformed) }
            if bytes[index] == securityType {
                // One byte of flags and four of the verification's result; two such extensions could
                // be read in two ways.
                guard next - value >= 5, isSecure == nil else {
                    return .failure(.extensionMalformed)
                }
                isSecure = bytes[value] & 1 == 1
            }
            index = next
        }
        return .success(isSecure)
    }

    /// Two bytes, the higher one first.
    private static func number(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt16 {
        UInt16(bytes[offset]) << 8 | UInt16(bytes[offset + 1])
    }
}
