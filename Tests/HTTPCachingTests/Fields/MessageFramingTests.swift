import Testing

@testable import HTTPCaching

/// Field lines and the framing that they give: all known ways in which two parsers disagree.
@Suite("Framing of responses, RFC 9112 §6.3")
struct MessageFramingTests {
    /// Notes the lines; one that begins with whitespace continues the line before it.
    private static func framing(_ lines: String) -> MessageFraming {
        var framing = MessageFraming()
        for line in Array(lines.utf8).split(separator: 10) {
            if line.first?.isOptionalWhitespace == true {
                _ = framing.noteFold()
            } else {
                _ = note(Array(line), &framing)
            }
        }
        return framing
    }

    private static func note(
        _ line: [UInt8],
        _ framing: inout MessageFraming
    ) -> MessageFraming.Fault? {
        let name = Array(line.prefix { $0 != .colon })
        let value = Array(line.dropFirst(name.count + 1))
        return name.withUnsafeBytes { name in
            value.withUnsafeBytes { framing.note(name: name, value: $0) }
        }
    }

    @Test(
        "RFC 9110 §8.6: lengths that differ or are no numbers",
        arguments: [
            "5\nContent-Length: 6", "5, 6", "-1", "+5", "5 5", "0x10", "5,", ",5", "5 ,5", "5,\t5",
            "", "\nContent-Length: 5", "1e3", "18446744073709551616", "9223372036854775808", "5;",
            "5\u{0}", "5\u{1}", "5\r", "\"5\"",
        ]
    )
    func doubtfulLengthIsRefused(value: String) {
        let framing = Self.framing("A: b\nContent-Length: \(value)\nC: d")
        #expect(framing.verdict(isOldVersion: false) == .refused(.lengthInvalid))
        #expect(framing.verdict(isOldVersion: true) == .refused(.lengthInvalid))
    }

    struct Refusal: Sendable {
        let lines: String
        let fault: MessageFraming.Fault

        init(_ lines: String, _ fault: MessageFraming.Fault) {
            self.lines = lines
            self.fault = fault
        }
    }

    static let refusals: [Refusal] = [
        .init("Content-Length : 5", .spaceBeforeColon),
        .init("Content-Length\t: 5", .spaceBeforeColon),
        .init("Content-Length : 5\nContent-Length: 5", .spaceBeforeColon),
        .init("Content-Length: 5\n 6", .folded),
        .init("Content-Length:\n 5", .folded),
        .init("Transfer-Encoding:\n\tchunked", .folded),
        .init("Transfer-Encoding: chunked\n , gzip", .folded),
        .init("Transfer-Encoding : chunked", .spaceBeforeColon),
        .init("Transfer-Encoding\t: chunked", .spaceBeforeColon),
        .init("Transfer-Encoding:", .codingUnknown),
        .init("Transfer-Encoding: gzip", .codingUnknown),
        .init("Transfer-Encoding: gzip\nContent-Length: 5", .codingUnknown),
        .init("Transfer-Encoding: identity", .codingUnknown),
        .init("transfer-encoding: chunked, chunked", .codingUnknown),
        .init("Transfer-Encoding: gzip, chunked", .codingUnknown),
        .init("Transfer-Encoding: chunked, gzip", .codingUnknown),
        .init("Transfer-Encoding: chunked;a=b", .codingUnknown),
        .init("Transfer-Encoding: \"chunked\"", .codingUnknown),
        .init("Transfer-Encoding: \u{b}chunked", .codingUnknown),
        .init("Transfer-Encoding: chunked\r", .codingUnknown),
        .init("Transfer-Encoding: chunke", .codingUnknown),
        .init("TRANSFER-ENCODING: x-chunked", .codingUnknown),
        .init("Transfer-Encoding: chunked\nTransfer-Encoding: chunked", .codingRepeated),
        .init("Transfer-Encoding: chunked\nTransfer-Encoding: gzip", .codingUnknown),
    ]

    @Test("§11.1: lines that two readers could understand differently", arguments: refusals)
    func doubtfulFramingIsRefused(_ row: Refusal) {
        let framing = Self.framing("A: b\n\(row.lines)\nC: d")
        #expect(framing.verdict(isOldVersion: false) == .refused(row.fault))
    }

    @Test(
        "§6.3: the coding frames the body, otherwise the length, otherwise the connection's end",
        arguments: [
            ("X: y", .untilClose), ("X: y\n folded", .untilClose),
            ("X-Content-Length: 5", .untilClose),
            ("Content-Length: 5", .length(5, isPlain: true)),
            ("Content-Length: 5\nX: y\n folded", .length(5, isPlain: true)),
            ("content-length:0", .length(0, isPlain: true)),
            ("Content-Length: 00012", .length(12, isPlain: false)),
            ("Content-Length: 5, 5,5", .length(5, isPlain: false)),
            ("Content-Length: 5,05", .length(5, isPlain: false)),
            ("Content-Length: 5\nX: y\nContent-length: 5", .length(5, isPlain: false)),
            ("Content-Length: 9223372036854775807", .length(.max, isPlain: true)),
            ("Transfer-Encoding:   CHUNKED\t ", .chunked(hasLength: false)),
            ("Content-Length: 5\nTransfer-Encoding: chunked", .chunked(hasLength: true)),
            ("Transfer-Encoding: chunked\nContent-Length: 5, 6", .chunked(hasLength: true)),
        ] as [(String, MessageFraming.Verdict)]
    )
    func framingFollowsTheLines(lines: String, verdict: MessageFraming.Verdict) {
        let framing = Self.framing("A: b\n\(lines)\nC: d")
        #expect(framing.verdict(isOldVersion: false) == verdict)
        if case .chunked = verdict {
            #expect(framing.verdict(isOldVersion: true) == .refused(.codingInOldVersion))
        } else {
            #expect(framing.verdict(isOldVersion: true) == verdict)
        }
    }

    @Test func eachLineNamesItsOwnFault() {
        var framing = MessageFraming()
        #expect(Self.note(Array("Transfer-Encoding: gzip".utf8), &framing) == .codingUnknown)
        #expect(Self.note(Array("Content-Length: 5".utf8), &framing) == nil)
        #expect(framing.noteFold() == .folded)
        #expect(Self.note(Array("X : y".utf8), &framing) == nil)
        #expect(framing.noteFold() == nil)
        #expect(framing.verdict(isOldVersion: false) == .refused(.folded))
    }

    @Test("§6.3: responses to HEAD, 204 and 304 have no body")
    func someResponsesHaveNoBody() {
        for status in [200, 206, 404, 500] {
            #expect(MessageFraming.hasBody(status: status, isHead: false))
            #expect(!MessageFraming.hasBody(status: status, isHead: true))
        }
        for status in [204, 304] { #expect(!MessageFraming.hasBody(status: status, isHead: false)) }
    }
}
