import CacheTestSupport
import HTTPCaching
import Testing

@testable import CacheProxy

/// RFC 9112 as tables of accepted and refused responses, in pieces of any size.
@Suite struct ResponseParserTests {
    struct Refusal: Sendable, CustomTestStringConvertible {
        let response: String
        let fault: ResponseFault
        init(_ response: String, _ fault: ResponseFault) {
            self.response = response
            self.fault = fault
        }
        var testDescription: String { "\(fault): \(response.debugDescription.prefix(60))" }
    }

    static let refusals: [Refusal] = [
        // Status line.
        .init("\r\nHTTP/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        .init(" HTTP/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        .init("\u{FEFF}HTTP/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        .init("http/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        .init("FTP/1.1 200\r\n\r\n", .malformedStatusLine),
        .init("SSH-2.0-x", .malformedStatusLine),
        .init("HTTP\r\n\r\n", .malformedStatusLine),
        .init("HTTP/\r\n\r\n", .malformedStatusLine),
        .init("HTTP/x.1 200\r\n\r\n", .malformedStatusLine),
        .init("HTTP/1.1\r\n\r\n", .malformedStatusLine),
        .init("HTTP/1.1 20\r\n\r\n", .malformedStatusLine),
        .init("HTTP/1.1 2000\r\n\r\n", .malformedStatusLine),
        .init("HTTP/1.1 099\r\n\r\n", .malformedStatusLine),
        .init("HTTP/1.1  200 OK\r\n\r\n", .malformedStatusLine),
        .init("HTTP/1.1\t200 OK\r\n\r\n", .malformedStatusLine),
        .init("HTTP/1.1 2x0 OK\r\n\r\n", .malformedStatusLine),
        .init("HTTP/1.11 200 OK\r\n\r\n", .malformedStatusLine),
        .init("HTTP/2 200\r\n\r\n", .versionUnknown),
        .init("HTTP/2.0 200 OK\r\n\r\n", .versionUnknown),
        .init("HTTP/0.9 200 OK\r\n\r\n", .versionUnknown),
        .init("HTTP/11 200 OK\r\n\r\n", .versionUnknown),
        .init("HTTP/1 200 OK\r\n\r\n", .versionUnknown),
        .init("HTTP/1.x 200 OK\r\n\r\n", .versionUnknown),
        // Bytes that could split a message.
        .init("HTTP/1.1 200 O\0K\r\n\r\n", .nulInHead),
        .init("HTTP/1.1 200 OK\r\nA: \0b\r\n\r\n", .nulInHead),
        .init("HTTP/1.1 200 OK\r\nA: b\r\n \0\r\n\r\n", .nulInHead),
        .init("HTTP/1.1 200 OK\r\nA: b\r\n\rX: y\r\n\r\n", .malformedLineEnd),
        .init("HTTP/1.1 200 OK\r\nA: b\r\n\r\r\n\r\n", .malformedLineEnd),
        .init("HTTP/1.1 200 OK\r\n A: b\r\n\r\n", .firstFieldFolded),
        .init("HTTP/1.1 200 OK\r\n\tA: b\r\n\r\n", .firstFieldFolded),
        // Interim heads.
        .init("HTTP/1.1 101 Switching\r\n\r\n", .interimRefused),
        .init(String(repeating: "HTTP/1.1 102 x\r\n\r\n", count: 33), .interimRefused),
        // Framing: `MessageFramingTests` has the table of all doubtful lines.
        .init(framed("Content-Length: 5\r\nContent-Length: 6"), .contentLengthInvalid),
        .init(framed("Content-Length:"), .contentLengthInvalid),
        .init(framed("Content-Length: 5;"), .contentLengthInvalid),
        .init(framed("Content-Length: 5\u{1}"), .contentLengthInvalid),
        .init(framed("Content-Length: 5\r"), .contentLengthInvalid),
        .init(framed("Content-Length : 5"), .spaceBeforeFramingColon),
        .init(framed("Content-Length: 5\r\n 6"), .framingFolded),
        .init(framed("Content-Length:\r\n 5"), .framingFolded),
        .init(framed("Transfer-Encoding:\r\n\tchunked"), .framingFolded),
        .init(framed("Transfer-Encoding: gzip"), .transferCodingUnknown),
        .init(framed("Transfer-Encoding: chunked\r"), .transferCodingUnknown),
        .init(
            framed("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            .transferEncodingRepeated
        ),
        .init(
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            .transferEncodingInOldVersion
        ),
        // Limits.
        .init(framed(String(repeating: "A: b\r\n", count: 513)), .headTooLarge),
        .init("HTTP/1.1 200 \(String(repeating: "a", count: 300_000))", .headTooLarge),
        .init("HTTP/1.1 200 OK\r\nA: \(String(repeating: "a", count: 300_000))", .headTooLarge),
        .init(
            framed(String(repeating: "A: \(String(repeating: "a", count: 9_000))\r\n", count: 30)),
            .headTooLarge
        ),
    ]

    static func framed(_ fields: String, status: Int = 200) -> String {
        "HTTP/1.1 \(status) x\r\nA: b\r\n\(fields)\r\nC: d\r\n\r\n"
    }

    @Test(arguments: refusals)
    func malformedResponseIsRefused(_ refusal: Refusal) {
        let outcome = ParsedResponse(refusal.response)
        #expect(outcome.fault == refusal.fault && outcome.head == nil)
    }

    @Test(arguments: refusals)
    func refusalDoesNotDependOnTheSplits(_ refusal: Refusal) {
        let bytes = Array(refusal.response.utf8)
        let stepBytes = bytes.count < 4_000 ? 1 : 1_013
        #expect(ParsedResponse(bytes, stepBytes: stepBytes).fault == refusal.fault)
    }

    /// The first byte that is wrong decides: it does not suit the protocol, or exceeds the limit.
    @Test(arguments: 0...5, ["X", "HX", "HTX", "HTTX", "HTTPX", "HTTP/X"])
    func faultAtTheLimitDoesNotDependOnTheSplits(room: Int, next: String) {
        var limits = ResponseLimits()
        let interim = "HTTP/1.1 103 x"
        limits.headBytesMax = interim.utf8.count + room
        let bytes = Array("\(interim)\r\n\r\n\(next)\r\n".utf8)
        // Five bytes name the protocol.
        let isWrongFirst = next.utf8.count - 1 <= min(room, 4)
        let fault: ResponseFault = isWrongFirst ? .malformedStatusLine : .headTooLarge
        #expect(ParsedResponse(bytes, limits: limits).fault == fault)
        #expect(ParsedResponse(bytes, stepBytes: 1, limits: limits).fault == fault)
    }

    /// A reader that thinks the status has a body would still be misled by its framing.
    @Test(arguments: [204, 304, 404, 500])
    func framingIsCheckedForEveryStatus(_ status: Int) {
        let text = Self.framed("Transfer-Encoding: gzip", status: status)
        #expect(ParsedResponse(text).fault == .transferCodingUnknown)
        #expect(ParsedResponse(text, isHead: true).fault == .transferCodingUnknown)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK", 200), ("HTTP/1.0 599 What", 599), ("HTTP/1.1 999", 999),
        ("HTTP/1.1 200", 200), ("HTTP/1.1 204 ", 204), ("HTTP/1.1 200OK", 200),
        ("HTTP/1.7 200 \u{e9}\r!", 200),
    ])
    func threeDigitsAreAStatus(line: String, status: Int) {
        let outcome = ParsedResponse(line + "\r\n\r\n")
        #expect(outcome.head?.status == status)
        #expect(outcome.head?.isOldVersion == line.hasPrefix("HTTP/1.0"))
    }

    @Test func headIsParsedToItsEnd() throws {
        let text =
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX-A:  one \t\r\nX-A: two\r\nEmpty:\r\n\r\n"
        let outcome = ParsedResponse(text + "HTTP/1.1 \0")
        let head = try #require(outcome.head)
        #expect(outcome.end == text.utf8.count)
        #expect(head.framing == .length(12))
        #expect(head.section.values("x-a") == ["one", "two"])
        #expect(head.section.values("Empty") == [""])
        #expect(head.section.count == 4)
        #expect(ParsedResponse(String(text.dropLast(2))).summary == "[] -1 ")
    }

    @Test func lineMayEndWithLineFeedAlone() {
        let head = ParsedResponse("HTTP/1.1 200 OK\nA: b\r\nContent-Length: 3\n\nabc")
        #expect(head.head?.section.description == "A: b\nContent-Length: 3\n")
        #expect(head.end == 41)
    }

    @Test func foldedLineIsOneLine() {
        let section = ParsedResponse(
            "HTTP/1.1 200 OK\r\nA: one\r\n  two\r\n\tthree \r\n \r\nB:\r\n x\r\nC: y\r\n\r\n"
        )
        .head?.section
        #expect(section?.description == "A: one two three\nB: x\nC: y\n")
    }

    @Test func linesThatAreNoFieldsAreLeftOut() {
        let section = ParsedResponse(
            "HTTP/1.1 200 OK\r\nnonsense\r\n folded\r\nBad Name: x\r\nA : 1\r\n: y\r\nB\u{1}: 2\r\n"
                + "Y\rContent-Length: 5\r\nC: 3\r\n\r\n"
        )
        .head?.section
        #expect(section?.description == "A: 1\nC: 3\n")
    }

    @Test func controlInAValueBecomesASpace() {
        let section = ParsedResponse(
            "HTTP/1.1 200 OK\r\nA: \u{1}\r\nVary: B\u{b}\r\nC: \u{7f}d\u{1}e\r\n"
                + "X: a\rContent-Length: 5\r\nY: a\r\n b\rc\r\n\r\n"
        )
        .head?.section
        let expected = "A: \nVary: B\nC: d e\nX: a Content-Length: 5\nY: a b c\n"
        #expect(section?.description == expected)
    }

    @Test func interimHeadsComeBeforeTheResponse() {
        let outcome = ParsedResponse(
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 x\r\n"
                + "Transfer-Encoding: gzip\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
        )
        #expect(outcome.interimHeads.map(\.status) == [103, 102])
        #expect(outcome.interimHeads.first?.section.description == "Link: </a>\n")
        #expect(outcome.interimHeads.allSatisfy { $0.framing == .none })
        #expect(outcome.head?.status == 200)
        #expect(outcome.head?.section.isEmpty == true)
        #expect(outcome.head?.wantsClose == false)
        let most =
            String(repeating: "HTTP/1.1 102 x\r\n\r\n", count: 32) + "HTTP/1.1 200 OK\r\n\r\n"
        #expect(ParsedResponse(most).head?.status == 200)
    }

    struct Framing: Sendable, CustomTestStringConvertible {
        var status = 200
        var isHead = false
        let fields: String
        let framing: BodyFraming
        /// The lines that remain of a `Content-Length`.
        var lengths: [String] = []
        var testDescription: String { "\(status) \(isHead ? "HEAD " : "")\(fields)" }
    }

    @Test(arguments: [
        Framing(fields: "X: y", framing: .untilClose),
        Framing(fields: "Content-Length: 5", framing: .length(5), lengths: ["5"]),
        Framing(fields: "content-length:0", framing: .length(0), lengths: ["0"]),
        Framing(fields: "Content-Length: 00012", framing: .length(12), lengths: ["12"]),
        Framing(fields: "Content-Length: 5, 5,5", framing: .length(5), lengths: ["5"]),
        Framing(fields: "Content-Length: 5,05", framing: .length(5), lengths: ["5"]),
        Framing(
            fields: "Content-Length: 5\r\nX: y\r\nContent-length: 5",
            framing: .length(5),
            lengths: ["5"]
        ),
        Framing(
            fields: "Content-Length: 9223372036854775807",
            framing: .length(.max),
            lengths: ["9223372036854775807"]
        ),
        Framing(fields: "Transfer-Encoding:   CHUNKED\t ", framing: .chunked),
        Framing(fields: "Content-Length: 5\r\nTransfer-Encoding: chunked", framing: .chunked),
        Framing(fields: "Transfer-Encoding: chunked\r\nContent-Length: 5, 6", framing: .chunked),
        Framing(status: 204, fields: "Content-Length: 5", framing: .none, lengths: ["5"]),
        Framing(status: 304, fields: "Content-Length: 05", framing: .none, lengths: ["5"]),
        Framing(status: 304, fields: "Transfer-Encoding: chunked", framing: .none),
        Framing(isHead: true, fields: "Content-Length: 5", framing: .none, lengths: ["5"]),
        Framing(isHead: true, fields: "X: y", framing: .none),
    ])
    func framingFollowsTheFields(_ row: Framing) {
        let text = Self.framed(row.fields, status: row.status)
        for outcome in [
            ParsedResponse(text, isHead: row.isHead),
            ParsedResponse.byBytes(text, isHead: row.isHead),
        ] {
            #expect(outcome.head?.framing == row.framing)
            #expect(outcome.head?.section.values("content-length") == row.lengths)
            #expect(outcome.head?.section.values("C") == ["d"])
            let isTwice = row.fields.contains("Transfer") && row.fields.contains("Length")
            #expect(outcome.head?.isFramedTwice == isTwice)
        }
    }

    @Test(arguments: [
        ("1.1", "X: y", true), ("1.1", "Connection: close", false),
        ("1.1", "Connection: x\r\nconnection: y, CLOSE", false),
        ("1.1", "Connection: x\r\n , close", false), ("1.1", "Connection : close", false),
        ("1.0", "X: y", false), ("1.0", "Connection: Keep-Alive", true),
        ("1.0", "Connection: keep-alive, close", false), ("1.7", "X: y", true),
        ("1.1", "Connection: closed", true), ("1.1", "X-Connection: close", true),
        ("1.1", "Connection: close\u{1}, close", false),
    ])
    func persistenceFollowsVersionAndConnection(_ row: (String, String, Bool)) {
        let text = "HTTP/\(row.0) 200 OK\r\nContent-Length: 0\r\n\(row.1)\r\n\r\n"
        #expect(ParsedResponse(text).head?.mayPersist == row.2)
    }

    /// The fields that it names must not be passed on, so it is kept for the one who drops them.
    @Test(arguments: [
        ("close", []), ("keep-alive", []), (" , Keep-Alive ,close", []), ("", []),
        ("X-Mine", ["X-Mine"]), ("keep-alive, X-Mine", ["keep-alive, X-Mine"]),
        ("closed", ["closed"]),
    ])
    func connectionIsKeptIfItNamesAField(_ row: (value: String, kept: [String])) {
        let outcome = ParsedResponse(Self.framed("Connection: \(row.value)"))
        #expect(outcome.head?.section.values("connection") == row.kept)
    }

    @Test(arguments: ["X: y", "Transfer-Encoding: chunked\r\nContent-Length: 5"])
    func connectionWithoutACertainEndIsNotKept(_ fields: String) {
        #expect(ParsedResponse(Self.framed(fields)).head?.mayPersist == false)
    }

    @Test func headsOfOneResponseShareTheLimitOfBytes() {
        let interim = "HTTP/1.1 103 x\r\nA: \(String(repeating: "x", count: 200 << 10))\r\n\r\n"
        #expect(ParsedResponse(interim + "HTTP/1.1 200 OK\r\n\r\n").head?.status == 200)
        let two = ParsedResponse(interim + interim)
        #expect(two.interimHeads.count == 1 && two.fault == .headTooLarge)
        let final = interim.replacing("103", with: "200")
        #expect(ParsedResponse(interim + final).fault == .headTooLarge)
    }

    @Test func limitsAreExact() {
        var limits = ResponseLimits()
        limits.fieldCountMax = 10
        limits.headBytesMax = 100
        limits.interimCountMax = 0
        let ten = "HTTP/1.1 200 OK\r\n" + String(repeating: "A: 1\r\n", count: 10)
        #expect(ParsedResponse.byBytes(ten + "\r\n", limits: limits).head != nil)
        #expect(ParsedResponse.byBytes(ten + "x\r\n\r\n", limits: limits).fault == .headTooLarge)
        let full = "HTTP/1.1 200 OK\r\nA: " + String(repeating: "x", count: 82)
        #expect(ParsedResponse.byBytes(full + "\r\n\r\n", limits: limits).head != nil)
        #expect(ParsedResponse.byBytes(full + "x", limits: limits).fault == .headTooLarge)
        let interim = "HTTP/1.1 102 x\r\n\r\n"
        #expect(ParsedResponse.byBytes(interim, limits: limits).fault == .interimRefused)
    }
}
