import CacheTestSupport
import HTTPCaching
import Testing

@testable import CacheProxy

/// RFC 9112 as tables of accepted and refused requests, in pieces of any size.
@Suite struct RequestParserTests {
    typealias Step = RequestParser.Step

    struct Refusal: Sendable, CustomTestStringConvertible {
        let request: String
        let fault: RequestFault
        init(_ request: String, _ fault: RequestFault) {
            self.request = request
            self.fault = fault
        }
        var testDescription: String { "\(fault): \(request.debugDescription.prefix(60))" }
    }

    static let host = "Host: a\r\n"

    static let refusals: [Refusal] = [
        // Request line.
        .init(" GET / HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET  / HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET /  HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET\t/ HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET / HTTP/1.1 \r\n\(host)\r\n", .malformedRequestLine),
        .init("GET /\r\n\r\n", .malformedRequestLine),
        .init("GET / http/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET / HTTP/1.11\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET / HTTP/11\r\n\(host)\r\n", .malformedRequestLine),
        .init("G(T / HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET /a b HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET /a#b HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET /\u{e9} HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET /\0 HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("GET /\r/ HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("\u{16}\u{3}\u{1}\u{2}", .malformedRequestLine),
        .init("\r\n\r\nGET / HTTP/1.1\r\n\(host)\r\n", .malformedRequestLine),
        .init("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .versionUnknown),
        .init("GET / HTTP/0.9\r\n\(host)\r\n", .versionUnknown),
        .init("GET / HTTP/1.1\n\(host)\r\n", .malformedLineEnd),
        .init("\nGET / HTTP/1.1\r\n\(host)\r\n", .malformedLineEnd),
        .init("\(String(repeating: "A", count: 33)) / HTTP/1.1\r\n\(host)\r\n", .methodTooLong),
        .init(
            "GET /\(String(repeating: "a", count: 8192)) HTTP/1.1\r\n\(host)\r\n",
            .targetTooLong
        ),
        .init("GET /\(String(repeating: "a", count: 20_000))", .targetTooLong),
        // Field lines.
        .init("GET / HTTP/1.1\r\n\(host)X : y\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host) X: y\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n X: y\r\n\(host)\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host)X: y\r\n z\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host)X: y\r\n\tz\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host): y\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host)X\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host)X: a\0b\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host)X: a\rb\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host)X: a\u{b}b\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host)X\u{a0}: b\r\n\r\n", .malformedField),
        .init("GET / HTTP/1.1\r\n\(host)X: b\n\r\n", .malformedLineEnd),
        .init("GET / HTTP/1.1\r\n\(host)\n", .malformedLineEnd),
        .init("GET / HTTP/1.1\r\n\(host)\r\r\n", .malformedField),
        // Host.
        .init("GET / HTTP/1.1\r\n\r\n", .hostMissing),
        .init("GET / HTTP/1.1\r\n\(host)Host: b\r\n\r\n", .hostRepeated),
        .init("GET / HTTP/1.1\r\n\(host)\(host)\r\n", .hostRepeated),
        .init("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", .malformedHost),
        .init("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", .malformedHost),
        .init("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", .malformedHost),
        .init("GET / HTTP/1.1\r\nHost: a?b\r\n\r\n", .malformedHost),
        // Framing: all known ways in which two parsers disagree.
        .init(post("Content-Length: 5, 5"), .contentLengthInvalid),
        .init(post("Content-Length: 5\r\nContent-Length: 5"), .contentLengthRepeated),
        .init(post("Content-Length: 5\r\nContent-Length: 6"), .contentLengthRepeated),
        .init(post("Content-Length: -5"), .contentLengthInvalid),
        .init(post("Content-Length: +5"), .contentLengthInvalid),
        .init(post("Content-Length: 5 5"), .contentLengthInvalid),
        .init(post("Content-Length: 0x5"), .contentLengthInvalid),
        .init(post("Content-Length: 5;"), .contentLengthInvalid),
        .init(post("Content-Length:"), .contentLengthInvalid),
        .init(post("Content-Length: 99999999999999999999"), .contentLengthInvalid),
        .init(post("Content-Length : 5"), .malformedField),
        .init(post("Content-Length: 5\r\nTransfer-Encoding: chunked"), .lengthAndTransferEncoding),
        .init(post("Transfer-Encoding: chunked\r\nContent-Length: 5"), .lengthAndTransferEncoding),
        .init(
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            .transferEncodingRepeated
        ),
        .init(
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
            .transferEncodingRepeated
        ),
        .init(post("Transfer-Encoding: identity"), .transferCodingUnknown),
        .init(post("Transfer-Encoding: xchunked"), .transferCodingUnknown),
        .init(post("Transfer-Encoding: chunked, chunked"), .transferCodingUnknown),
        .init(post("Transfer-Encoding: gzip, chunked"), .transferCodingUnknown),
        .init(post("Transfer-Encoding: chunked, identity"), .transferCodingUnknown),
        .init(post("Transfer-Encoding: \"chunked\""), .transferCodingUnknown),
        .init(post("Transfer-Encoding: chunked;q=1"), .transferCodingUnknown),
        .init(post("Transfer-Encoding: ,chunked"), .transferCodingUnknown),
        .init(post("Transfer-Encoding:"), .transferCodingUnknown),
        .init(post("Transfer-Encoding: \u{b}chunked"), .malformedField),
        .init(post("Transfer-Encoding : chunked"), .malformedField),
        .init(post("X: y\r\n Transfer-Encoding: chunked"), .malformedField),
        .init(
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            .transferEncodingInOldVersion
        ),
        .init(post("Expect: 200-fine"), .expectationUnknown),
        // Limits.
        .init("GET / HTTP/1.1\r\n\(host)X: \(String(repeating: "a", count: 17_000))", .lineTooLong),
        .init(
            "GET / HTTP/1.1\r\n\(host)\(String(repeating: "X: y\r\n", count: 200))\r\n",
            .fieldsTooMany
        ),
        .init(post("Connection: \(String(repeating: "a,", count: 129))"), .fieldsTooMany),
        .init(
            post(
                "Connection: \(String(repeating: "a,", count: 64))\r\n"
                    + "Connection: \(String(repeating: "a,", count: 65))"
            ),
            .fieldsTooMany
        ),
        .init(
            "GET / HTTP/1.1\r\n\(host)"
                + String(repeating: "X: \(String(repeating: "a", count: 8_000))\r\n", count: 5),
            .headTooLarge
        ),
    ]

    static func post(_ fields: String) -> String { "POST / HTTP/1.1\r\n\(host)\(fields)\r\n\r\n" }

    @Test(arguments: refusals)
    func malformedRequestIsRefused(_ refusal: Refusal) {
        #expect(Self.parseWhole(refusal.request).step == .refused(refusal.fault))
    }

    @Test(arguments: refusals)
    func refusalDoesNotDependOnTheSplits(_ refusal: Refusal) {
        guard refusal.request.utf8.count < 4_000 else { return }
        #expect(Self.parseByBytes(refusal.request).step == .refused(refusal.fault))
    }

    @Test func simpleRequestIsTaken() {
        let text = "GET /a?b=c HTTP/1.1\r\nHost: x:80\r\nX-Y:  z \t\r\nEmpty:\r\n\r\n"
        let (step, parser) = Self.parseWhole(text)
        #expect(step == .complete(text.utf8.count))
        let head = parser.head
        #expect(Self.cut(text, head.method) == "GET")
        #expect(head.methodKind == .get)
        #expect(Self.cut(text, head.target) == "/a?b=c")
        #expect(head.host.map { Self.cut(text, $0) } == "x:80")
        #expect(head.fields.map { Self.cut(text, $0.name) } == ["Host", "X-Y", "Empty"])
        #expect(head.fields.map { Self.cut(text, $0.value) } == ["x:80", "z", ""])
        #expect(head.framing == .none)
        #expect(head.mayPersist)
        #expect(!head.hasContent)
    }

    @Test func onlyTheFirstHeadIsTaken() {
        let first = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(Self.parseWhole(first + first).step == .complete(first.utf8.count))
        #expect(Self.parseWhole(first + "\0\0").step == .complete(first.utf8.count))
    }

    @Test func oneEmptyLineInFrontIsForgiven() {
        let text = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(Self.parseWhole(text).step == .complete(text.utf8.count))
    }

    @Test func framingIsRead() {
        #expect(Self.parseWhole(Self.post("Content-Length: 12")).parser.head.framing == .length(12))
        #expect(Self.parseWhole(Self.post("content-length: 007")).parser.head.framing == .length(7))
        #expect(
            Self.parseWhole(Self.post("Transfer-Encoding: Chunked")).parser.head.framing == .chunked
        )
        #expect(!Self.parseWhole(Self.post("Content-Length: 0")).parser.head.hasContent)
    }

    @Test(arguments: [
        ("1.1", "", true), ("1.1", "Connection: close\r\n", false), ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true), ("1.1", "Connection: x, CLOSE\r\n", false),
        ("1.0", "Connection: keep-alive, close\r\n", false), ("1.7", "", true),
    ])
    func persistenceFollowsVersionAndConnection(_ row: (String, String, Bool)) {
        let parser = Self.parseWhole("GET / HTTP/\(row.0)\r\nHost: a\r\n\(row.1)\r\n").parser
        #expect(parser.head.mayPersist == row.2)
    }

    @Test func connectionMayListAsManyNamesAsAHeadHasFields() {
        let names = String(repeating: "close, a, keep-alive,", count: WireLimits().fieldCountMax)
        let text = Self.post("Connection: \(names)")
        #expect(Self.parseWhole(text).step == .complete(text.utf8.count))
    }

    @Test(arguments: UInt64(0)..<64)
    func resultDoesNotDependOnTheSplits(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let text = Self.randomRequest(&random)
        let whole = Self.parseWhole(text)
        let bytes = Array(text.utf8)
        var parser = RequestParser()
        var step = Step.needsMore
        var given = 0
        while step == .needsMore, given < bytes.count {
            given = min(bytes.count, given + Int.random(in: 1...9, using: &random))
            step = parser.parse(bytes.span.extracting(..<given), WireLimits())
        }
        #expect(step == whole.step)
        #expect(parser.head.fields == whole.parser.head.fields)
        #expect(parser.head.framing == whole.parser.head.framing)
    }

    @Test(arguments: UInt64(0)..<64)
    func damagedRequestsNeverCrossTheirBytes(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<200 {
            var bytes = Array(Self.randomRequest(&random).utf8)
            for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] =
                    [0, 9, 10, 13, 32, 34, 44, 58, 127, 255].randomElement(using: &random) ?? 0
            }
            var parser = RequestParser()
            let step = parser.parse(bytes.span, WireLimits())
            guard case .complete(let end) = step else { continue }
            #expect(end <= bytes.count)
            #expect(bytes[..<end].suffix(2) == [13, 10])
            let head = parser.head
            #expect(head.fields.allSatisfy { $0.value.upperBound <= end - 2 })
            for place in head.fields {
                #expect(!bytes[place.value].contains(13) && !bytes[place.value].contains(10))
            }
        }
    }

    // MARK: Helpers

    static func parseWhole(_ text: String) -> (step: Step, parser: RequestParser) {
        var parser = RequestParser()
        let step = parser.parse(Array(text.utf8).span, WireLimits())
        return (step, parser)
    }

    static func parseByBytes(_ text: String) -> (step: Step, parser: RequestParser) {
        var parser = RequestParser()
        let bytes = Array(text.utf8)
        for count in 1...bytes.count {
            let step = parser.parse(bytes.span.extracting(..<count), WireLimits())
            if step != .needsMore { return (step, parser) }
        }
        return (.needsMore, parser)
    }

    static func cut(_ text: String, _ range: Range<Int>) -> String {
        String(decoding: Array(text.utf8)[range], as: UTF8.self)
    }

    static func randomRequest(_ random: inout SeededRandom) -> String {
        let method = ["GET", "HEAD", "POST", "PURGE-IT"].randomElement(using: &random) ?? "GET"
        var text = "\(method) /\(random.next()) HTTP/1.1\r\nHost: h\(random.next() % 9)\r\n"
        for _ in 0..<Int.random(in: 0...6, using: &random) {
            let line = [
                "Accept: */*", "X-A:b", "Connection: close, x", "Content-Length: 5",
                "Transfer-Encoding: chunked", "Expect: 100-continue", "Cookie: a=\"b\"; c",
                "Via: 1.1 x", "Bad Line",
            ].randomElement(using: &random)
            text += (line ?? "") + "\r\n"
        }
        return text + "\r\n"
    }
}
