import CacheTestSupport
import Testing

@testable import CacheProxy

/// The PROXY protocol as tables of accepted and refused headers, in pieces of any size.
@Suite struct ProxyHeaderTests {
    typealias Step = ProxyHeaderParser.Step

    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        let step: Step
        init(_ name: String, _ bytes: [UInt8], _ step: Step) {
            self.name = name
            self.bytes = bytes
            self.step = step
        }
        init(_ line: String, _ step: Step) { self.init(line, Array(line.utf8), step) }
        var testDescription: String { name.debugDescription }
    }

    static func accepted(_ line: String, _ header: ProxyHeader) -> Row {
        Row(line, .complete(header, line.utf8.count))
    }

    static func client(_ address: String?, _ scheme: RequestScheme = .http) -> ProxyHeader {
        .client(address: address.flatMap { IPAddress($0) }, scheme: scheme)
    }

    static let lines: [Row] = [
        accepted("PROXY TCP4 192.0.2.1 10.0.0.1 5 80\r\n", client("192.0.2.1")),
        accepted("PROXY TCP4 192.0.2.1 10.0.0.1 0 65535\r\n", client("192.0.2.1")),
        accepted("PROXY TCP4 192.0.2.1 10.0.0.1 5 443\r\n", client("192.0.2.1", .https)),
        accepted("PROXY TCP6 2001:db8::1 ::1 5 443\r\n", client("2001:db8::1", .https)),
        accepted("PROXY TCP6 ::ffff:192.0.2.1 ::1 5 80\r\n", client("192.0.2.1")),
        accepted("PROXY UNKNOWN\r\n", .sender),
        accepted("PROXY UNKNOWN what ever 1\r\n", .sender),
        accepted("PROXY UNKNOWN \(String(repeating: "f", count: 91))\r\n", .sender),
        .init("PROXY UNKNOWNS\r\n", .refused(.lineMalformed)),
        .init("PROXY UNKNOWN \(String(repeating: "f", count: 92))\r\n", .refused(.lineTooLong)),
        .init("PROXY TCP4 \(String(repeating: "1", count: 200))", .refused(.lineTooLong)),
        .init("PROXY TCP4 192.0.2.1 10.0.0.1 5 80\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 192.0.2.1 10.0.0.1 5 80\r\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4  192.0.2.1 10.0.0.1 5 80\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 192.0.2.1 10.0.0.1 5 80 \r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 192.0.2.1 10.0.0.1 5\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 192.0.2.1 10.0.0.1 5 080\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 192.0.2.1 10.0.0.1 5 +80\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 192.0.2.1 10.0.0.1 65536 80\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 192.0.2.1 10.0.0.1  80\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 192.0.2.256 10.0.0.1 5 80\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 192.0.2.1\0 10.0.0.1 5 80\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 a.test 10.0.0.1 5 80\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP4 ::1 ::1 5 80\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP6 192.0.2.1 10.0.0.1 5 80\r\n", .refused(.lineMalformed)),
        .init("PROXY TCP6 fe80::1%eth0 ::1 5 80\r\n", .refused(.lineMalformed)),
        .init("PROXY UDP4 192.0.2.1 10.0.0.1 5 80\r\n", .refused(.lineMalformed)),
        .init("PROXY \r\n", .refused(.lineMalformed)), .init("PROXY \n", .refused(.lineMalformed)),
        .init("PROXY\r\n", .refused(.missing)), .init("proxy UNKNOWN\r\n", .refused(.missing)),
        .init("PUT / HTTP/1.1\r\n", .refused(.missing)), .init("GET", .refused(.missing)),
        .init("\r\n\r\nGET / HTTP/1.1\r\n", .refused(.missing)),
        .init("\u{16}\u{3}\u{1}", .refused(.missing)),
        .init("PROXY TCP4 192.0.2.1 10.0", .needsMore), .init("P", .needsMore),
        .init("", .needsMore),
    ]

    // MARK: Version 2

    static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]
    static let four: [UInt8] = [192, 0, 2, 1, 10, 0, 0, 1, 0, 5, 0, 80]
    static let six: [UInt8] =
        [0x20, 1, 0xD, 0xB8] + Array(repeating: 0, count: 11) + [1]
        + Array(repeating: 0, count: 15) + [1] + [0, 5, 1, 0xBB]
    static let unix = [UInt8](repeating: 0x2F, count: 216)

    static func binary(_ command: UInt8, _ family: UInt8, _ rest: [UInt8], length: Int? = nil)
        -> [UInt8]
    {
        let count = length ?? rest.count
        return signature + [command, family, UInt8(count >> 8), UInt8(count & 0xFF)] + rest
    }

    static func tlv(_ type: UInt8, _ value: [UInt8]) -> [UInt8] {
        [type, UInt8(value.count >> 8), UInt8(value.count & 0xFF)] + value
    }

    static func accepted(_ name: String, _ bytes: [UInt8], _ header: ProxyHeader) -> Row {
        Row(name, bytes, .complete(header, bytes.count))
    }

    static let secured = tlv(0x20, [1, 0, 0, 0, 0] + tlv(0x21, Array("TLSv1.3".utf8)))
    static let plain = tlv(0x20, [0, 0, 0, 0, 0])
    static let port443: [UInt8] = Array(four.dropLast(2)) + [1, 0xBB]

    static let binaries: [Row] = [
        accepted("TCP4", binary(0x21, 0x11, four), client("192.0.2.1")),
        accepted("UDP4", binary(0x21, 0x12, four), client("192.0.2.1")),
        accepted("TCP4 to port 443", binary(0x21, 0x11, port443), client("192.0.2.1", .https)),
        accepted("TLS", binary(0x21, 0x11, four + secured), client("192.0.2.1", .https)),
        accepted("no TLS", binary(0x21, 0x11, port443 + plain), client("192.0.2.1")),
        accepted(
            "TLS behind others",
            binary(0x21, 0x11, four + tlv(4, [0, 0]) + tlv(5, [7]) + secured),
            client("192.0.2.1", .https)
        ),
        accepted("TCP6", binary(0x21, 0x21, six), client("2001:db8::1", .https)),
        accepted("unix", binary(0x21, 0x31, unix), client(nil)),
        accepted("unix and TLS", binary(0x21, 0x31, unix + secured), client(nil, .https)),
        accepted("unspecified", binary(0x21, 0x00, []), .sender),
        accepted("unspecified with extensions", binary(0x21, 0x00, secured), .sender),
        accepted("local", binary(0x20, 0x00, []), .sender),
        accepted("local with addresses", binary(0x20, 0x11, four), .sender),
        accepted("local with any block", binary(0x20, 0xFF, [1, 2, 3]), .sender),
        .init("version 1", binary(0x11, 0x11, four), .refused(.versionUnknown)),
        .init("command 2", binary(0x22, 0x11, four), .refused(.versionUnknown)),
        .init("family 4", binary(0x21, 0x41, four), .refused(.familyUnknown)),
        .init("transport 3", binary(0x21, 0x13, four), .refused(.familyUnknown)),
        .init("TCP4 too short", binary(0x21, 0x11, four.dropLast()), .refused(.addressMissing)),
        .init("TCP6 too short", binary(0x21, 0x21, four), .refused(.addressMissing)),
        .init("too long", binary(0x21, 0x11, four, length: 4_081), .refused(.tooLong)),
        .init("local too long", binary(0x20, 0x00, [], length: 65_535), .refused(.tooLong)),
        .init("one byte of an extension", binary(0x21, 0x11, four + [4]), malformed),
        .init("extension beyond the end", binary(0x21, 0x11, four + [4, 0, 1]), malformed),
        .init("short TLS", binary(0x21, 0x11, four + tlv(0x20, [1, 0, 0, 0])), malformed),
        .init("two of TLS", binary(0x21, 0x11, four + plain + secured), malformed),
        .init("incomplete", binary(0x21, 0x11, four).dropLast(), .needsMore),
        .init("TLS to us", [0x16, 3, 1], .refused(.missing)),
        .init("wrong signature", [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 11], missing),
    ]

    static let malformed = Step.refused(.extensionMalformed)
    static let missing = Step.refused(.missing)

    static func parse(_ bytes: some Collection<UInt8>) -> Step {
        Array(bytes).withUnsafeBytes(ProxyHeaderParser.parse)
    }

    static let rows = lines + binaries

    @Test(arguments: rows)
    func headerIsReadAsTheProtocolSays(_ row: Row) { #expect(Self.parse(row.bytes) == row.step) }

    /// The rows with bytes of a request behind them.
    @Test(arguments: rows)
    func bytesBehindTheHeaderAreLeftAlone(_ row: Row) {
        guard row.step != .needsMore else { return }
        #expect(Self.parse(row.bytes + Array("GET / HTTP/1.1\r\n".utf8)) == row.step)
    }

    @Test(arguments: rows)
    func resultDoesNotDependOnTheSplits(_ row: Row) { Self.checkPrefixes(row.bytes) }

    /// Headers of the table with a few bytes changed.
    @Test(arguments: 0..<64 as Range<UInt64>)
    func damagedHeaderDoesNotDependOnTheSplits(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for row in Self.rows where !row.bytes.isEmpty {
            var bytes = row.bytes
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: bytes.indices, using: &random)
                bytes[place] = UInt8.random(in: .min ... .max, using: &random)
            }
            Self.checkPrefixes(bytes)
        }
    }

    /// Every prefix needs more, or has the result of the whole.
    private static func checkPrefixes(_ bytes: [UInt8]) {
        let whole = parse(bytes)
        var first: Int?
        for count in 0...bytes.count {
            let step = parse(bytes.prefix(count))
            if step == .needsMore {
                #expect(first == nil)
            } else {
                first = first ?? count
                #expect(step == whole)
            }
        }
        if case .complete(_, let end) = whole { #expect(first == end) }
    }

    @Test func everyFaultHasATextAndARow() {
        let texts = Set(ProxyHeaderFault.allCases.map(\.text))
        #expect(texts.count == ProxyHeaderFault.allCases.count)
        for fault in ProxyHeaderFault.allCases where fault != .cut && fault != .late {
            #expect(Self.rows.contains { $0.step == .refused(fault) }, "\(fault)")
        }
    }
}
