import CacheEngine
import CacheTestSupport
import Testing

@testable import CurlOrigin

@Suite struct HeadParserTests {
    /// The result of parsing one or more complete message heads.
    private struct Outcome {
        var informational: [ResponseHead] = []
        var head: ResponseHead?
        var error: CacheError?
    }

    private func parse(
        _ text: String,
        limits: CurlConfiguration.Limits = .init(),
        isHead: Bool = false
    ) -> Outcome {
        var parser = HeadParser(limits: limits, isHead: isHead)
        var outcome = Outcome()
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            let bytes = [UInt8]((line + "\r\n").utf8)
            switch bytes.withUnsafeBytes({ parser.consume($0) }) {
            case .none: break
            case .informational(let head): outcome.informational.append(head)
            case .final(let head): outcome.head = head
            case .refused(let error):
                outcome.error = error
                return outcome
            }
        }
        return outcome
    }

    @Test func headIsParsedLineByLine() throws {
        let head = try #require(
            parse("HTTP/1.1 200 OK\nContent-Length: 12\nX-A:  one \nX-A: two\nEmpty:\n\n").head
        )
        #expect(head.status == 200)
        #expect(head.contentBytes == 12)
        #expect(head.hasContent)
        #expect(head.fields.values("x-a") == ["one", "two"])
        #expect(head.fields["Empty"] == "")
        #expect(head.fields.count == 4)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK", 200), ("HTTP/2 204 ", 204), ("HTTP/1.0 599 What", 599),
        ("HTTP/1.1 999", 999), ("HTTP/1.1 200", 200),
    ])
    func anyThreeDigitsAreAStatus(line: String, status: Int) {
        #expect(parse(line + "\n\n").head?.status == status)
    }

    @Test(arguments: [
        "", "FTP/1.1 200", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 099", "HTTP/1.1",
    ])
    func invalidStatusLineIsRefused(line: String) {
        #expect(parse(line + "\n\n").error?.code == .originMisbehaved)
    }

    @Test func informationalHeadsComeBeforeTheAnswer() {
        let outcome = parse(
            "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 102 Processing\n\nHTTP/1.1 200 OK\n\n"
        )
        #expect(outcome.informational.map(\.status) == [103, 102])
        #expect(outcome.informational.first?.fields["Link"] == "</a>")
        #expect(outcome.head?.status == 200)
        #expect(outcome.head?.fields.isEmpty == true)
    }

    @Test func stormOfInformationalHeadsIsRefused() {
        let storm = String(repeating: "HTTP/1.1 102 Processing\n\n", count: 33)
        #expect(parse(storm).error?.code == .originMisbehaved)
        #expect(parse("HTTP/1.1 101 Switching\n\n").error?.code == .originMisbehaved)
    }

    @Test func headsOfOneResponseShareTheLimitOfBytes() {
        let limits = CurlConfiguration.Limits(maximumFields: 10, maximumHeadSize: .bytes(300))
        let interim = "HTTP/1.1 103 x\nA: \(String(repeating: "x", count: 200))\n\n"
        let one = parse(interim + "HTTP/1.1 200 OK\n\n", limits: limits)
        #expect(one.informational.count == 1 && one.head?.status == 200)
        let two = parse(interim + interim, limits: limits)
        #expect(two.informational.count == 1 && two.error?.code == .originMisbehaved)
    }

    @Test func eachHeadMayHaveAsManyFieldsAsTheLimitSays() {
        let limits = CurlConfiguration.Limits(maximumFields: 10)
        let fields = String(repeating: "A: 1\n", count: 10) + "\n"
        let both = parse("HTTP/1.1 103 x\n\(fields)HTTP/1.1 200 x\n\(fields)", limits: limits)
        #expect(both.informational.count == 1 && both.head?.fields.count == 10)
    }

    @Test func trailersAreIgnoredButCounted() {
        let limits = CurlConfiguration.Limits(maximumFields: 4)
        let head = "HTTP/1.1 200 OK\nA: 1\n\n"
        let outcome = parse(head + "Set-Cookie: evil\nContent-Length: 3\n", limits: limits)
        #expect(outcome.head?.fields.pairs.map(\.name) == ["A"])
        #expect(outcome.error == nil)
        let many = String(repeating: "T: 1\n", count: 7)
        #expect(parse(head + many, limits: limits).error?.code == .originMisbehaved)
    }

    @Test func foldedLineIsOneLine() {
        let head = parse("HTTP/1.1 200 OK\nA: one\n  two\n\tthree\nB: x\n\n").head
        #expect(head?.fields["A"] == "one two three")
        #expect(head?.fields["B"] == "x")
    }

    @Test func linesThatAreNoFieldsAreLeftOut() {
        let head = parse("HTTP/1.1 200 OK\nnonsense\nBad Name: x\nA : 1\n: y\nB\u{1}: 2\nC: 3\n\n")
            .head
        #expect(head?.fields.pairs.map(\.name) == ["A", "C"])
    }

    @Test func controlInAValueBecomesASpace() {
        let head = parse("HTTP/1.1 200 OK\nA: \u{1}\nVary: B\u{b}\nC: \u{7f}d\u{1}e\n\n").head
        #expect(head?.fields.pairs.map(\.value) == ["", "B", "d e"])
    }

    @Test(arguments: [
        ("Content-Length: 5\nContent-Length: 5", 5), ("Content-Length: 5, 5", 5),
        ("Content-Length: 0", 0), ("Content-Length: 00012", 12),
    ])
    func agreeingLengthsAreOneLength(lines: String, length: Int) {
        let head = parse("HTTP/1.1 200 OK\n\(lines)\n\n").head
        #expect(head?.contentBytes == length)
        #expect(head?.fields.values("content-length") == ["\(length)"])
    }

    @Test func transferCodingBeatsTheLength() {
        let head = parse("HTTP/1.1 200 OK\nContent-Length: 5\nTransfer-Encoding: chunked\n\n").head
        #expect(head?.contentBytes == nil)
        #expect(head?.fields["Content-Length"] == nil)
        #expect(head?.isFramedTwice == true)
    }

    /// `MessageFramingTests` has the table of all doubtful lines; here is one for each fault.
    @Test(arguments: [
        "Transfer-Encoding: gzip", "Transfer-Encoding: chunked\nTransfer-Encoding: chunked",
        "Transfer-Encoding : chunked", "Content-Length: 5\n 6", "Content-Length: 5, 6",
        "Content-Length: 5;", "Content-Length: 5\u{0}",
    ])
    func doubtfulFramingIsRefused(lines: String) {
        for status in [200, 204, 304, 500] {
            let outcome = parse("HTTP/1.1 \(status) x\nA: b\n\(lines)\nC: d\n\n")
            #expect(outcome.error?.code == .originMisbehaved && outcome.head == nil)
        }
    }

    @Test func framingOfAnInterimHeadIsNotThatOfTheAnswer() {
        let outcome = parse("HTTP/1.1 103 x\nTransfer-Encoding: gzip\n\nHTTP/1.1 200 x\n\n")
        #expect(outcome.head?.status == 200 && outcome.error == nil)
        #expect(parse("HTTP/1.0 200 x\nTransfer-Encoding: chunked\n\n").error != nil)
    }

    @Test(arguments: [204, 304])
    func someStatusesHaveNoContent(status: Int) {
        let head = parse("HTTP/1.1 \(status) x\nContent-Length: 5\n\n").head
        #expect(head?.hasContent == false)
        #expect(head?.contentBytes == nil)
        #expect(head?.fields["Content-Length"] == "5")
    }

    @Test func answerToHEADHasNoContent() {
        let head = parse("HTTP/1.1 200 OK\nContent-Length: 5\n\n", isHead: true).head
        #expect(head?.hasContent == false)
        #expect(head?.fields["Content-Length"] == "5")
    }

    @Test func headOverItsLimitsIsRefused() {
        let limits = CurlConfiguration.Limits(maximumFields: 10, maximumHeadSize: .bytes(1000))
        let ten = String(repeating: "A: 1\n", count: 10)
        #expect(parse("HTTP/1.1 200 OK\n\(ten)\n", limits: limits).head != nil)
        #expect(parse("HTTP/1.1 200 OK\n\(ten)A: 1\nA: 2\n\n", limits: limits).error != nil)
        let long = "A: " + String(repeating: "x", count: 1000)
        #expect(parse("HTTP/1.1 200 OK\n\(long)\n\n", limits: limits).error != nil)
        let endless = CurlConfiguration.Limits(maximumFields: .max)
        #expect(parse("HTTP/1.1 200 OK\n\(ten)\n", limits: endless).head != nil)
    }

    @Test(arguments: [
        (
            "HTTP/1.1 20\u{1B}[0m\n\n",
            "The response does not begin with a status line: `HTTP/1.1 20\\u{1b}[0m`"
        ),
        (
            "HTTP/1.1 200 OK\nContent-Length: 5, 6\n\n",
            "The origin sent an invalid Content-Length: `5, 6`"
        ),
        (
            "HTTP/1.1 200 OK\nContent-Length: -5\n\n",
            "The origin sent an invalid Content-Length: `-5`"
        ),
        (
            "HTTP/1.1 200 OK\nTransfer-Encoding: \(String(repeating: "z", count: 200))\n\n",
            "The origin sent a Transfer-Encoding other than chunked: "
                + "`\(String(repeating: "z", count: 80))…`"
        ),
        (
            "HTTP/1.1 200 OK\nContent-Length : 5\n\n",
            "The origin sent a space in the field name `Content-Length `"
        ),
        (
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\ntransfer-encoding: chunked\n\n",
            "The origin sent Transfer-Encoding twice"
        ),
        (
            "HTTP/1.1 200 OK\nContent-Length: 5\n 6\n\n",
            "The origin folded Content-Length or Transfer-Encoding"
        ),
        (
            "HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n",
            "The origin sent Transfer-Encoding in an HTTP/1.0 response"
        ),
        ("HTTP/1.1 101 Up\n\n", "The origin sent status 101 without an upgrade"),
    ])
    func errorQuotesTheValue(lines: String, text: String) {
        #expect(parse(lines).error == CacheError(.originMisbehaved, detail: text))
    }

    @Test(arguments: 0..<64)
    func randomLinesNeverTrap(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var parser = HeadParser(limits: .init(), isHead: false)
        let alphabet = [UInt8]("HTTP/1.0 29\r\n:,\tContent-LengthA\u{0}".utf8) + [0xFF]
        for _ in 0..<200 {
            let line = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            _ = line.withUnsafeBytes { parser.consume($0) }
        }
    }
}
