import CacheEngine
import CacheTestSupport
import HTTPCaching
import Testing

@testable import CacheProxy
@testable import CurlOrigin

/// Random heads, in pieces of any size and against the parser of the origin over libcurl.
@Suite struct ResponseParserModelTests {
    @Test(arguments: UInt64(0)..<64)
    func resultDoesNotDependOnTheSplits(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<100 {
            var bytes = Self.randomResponse(&random)
            Self.damage(&bytes, using: &random)
            let whole = ParsedResponse(bytes).summary
            #expect(ParsedResponse(bytes, stepBytes: 1).summary == whole)
            let stepBytes = Int.random(in: 2...19, using: &random)
            #expect(ParsedResponse(bytes, stepBytes: stepBytes).summary == whole)
        }
    }

    @Test(arguments: UInt64(0)..<64)
    func resultIsThatOfTheParserBehindLibcurl(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<100 {
            var bytes = Self.randomResponse(&random)
            if random.next() % 2 == 0 { Self.damage(&bytes, using: &random) }
            let isHead = random.next() % 4 == 0
            let outcome = ParsedResponse(bytes, isHead: isHead)
            // libcurl itself refuses such heads, or ends them earlier.
            switch outcome.fault {
            case .nulInHead, .malformedLineEnd, .firstFieldFolded, .versionUnknown,
                .malformedStatusLine:
                continue
            default: break
            }
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(Self.summary(outcome) == Self.model(bytes, isHead: isHead), "\(text)")
        }
    }

    private static func summary(_ outcome: ParsedResponse) -> String {
        let heads = (outcome.interimHeads + [outcome.head].compactMap(\.self)).map { head in
            let (bodyBytes, hasBody): (Int?, Bool) =
                switch head.framing {
                case .none: (nil, false)
                case .length(let count): (count, true)
                case .chunked, .untilClose: (nil, true)
                }
            return summary(head.status, HeaderFields(head.section), bodyBytes, hasBody)
                + "\(head.isFramedTwice)"
        }
        return heads.joined() + (outcome.fault == nil ? "" : "refused")
    }

    private static func model(_ bytes: [UInt8], isHead: Bool) -> String {
        var parser = HeadParser(limits: .init(), isHead: isHead)
        var text = ""
        for line in bytes.split(separator: 10, omittingEmptySubsequences: false).dropLast() {
            switch (Array(line) + [10]).withUnsafeBytes({ parser.consume($0) }) {
            case .none: break
            case .informational(let head): text += summary(head)
            case .final(let head): return text + summary(head)
            case .refused: return text + "refused"
            }
        }
        return text
    }

    private static func summary(_ head: ResponseHead) -> String {
        summary(head.status, head.fields, head.contentBytes, head.hasContent)
            + "\(head.isFramedTwice)"
    }

    /// The parser behind libcurl writes `Content-Length` anew, in its own case, and keeps a line
    /// that concerns the connection alone.
    private static func summary(
        _ status: Int,
        _ fields: HeaderFields,
        _ bodyBytes: Int?,
        _ hasBody: Bool
    ) -> String {
        let kept = fields.pairs.filter { pair in
            pair.name.lowercased() != "connection"
                || pair.value.split(separator: ",").contains { member in
                    let option = member.filter { $0 != " " && $0 != "\t" }.lowercased()
                    return !["", "close", "keep-alive"].contains(option)
                }
        }
        let lines = kept.map { pair in
            let name = pair.name.lowercased() == "content-length" ? "Content-Length" : pair.name
            return "\(name): \(pair.value)\n"
        }
        return "\(status) \(bodyBytes ?? -1) \(hasBody)\n\(lines.joined())"
    }

    private static let lines = [
        "Content-Length: 5", "content-length: 5", "Content-Length: 05,5", "Content-Length: 6",
        "Content-Length:5 ", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip",
        "transfer-encoding:CHUNKED", "Content-Length : 5", " folded  line", "\tfolded", " ",
        "nonsense", ": nameless", "A: b", "A : b", "Bad Name: x", "B:", "Connection: close",
        "ETag: \"x\"", "X: \r y", "Content-Length: 9999999999999999999",
    ]

    private static func randomResponse(_ random: inout SeededRandom) -> [UInt8] {
        var text = ""
        for _ in 0..<Int.random(in: 0...2, using: &random) {
            text += "HTTP/1.1 103 x\r\n" + randomFields(&random)
        }
        let status = ["200 OK", "204", "304 Not Modified", "500 x"].randomElement(using: &random)
        let version = random.next() % 8 == 0 ? "1.0" : "1.1"
        text += "HTTP/\(version) \(status ?? "200")\r\n" + randomFields(&random)
        return Array(text.utf8)
    }

    private static func randomFields(_ random: inout SeededRandom) -> String {
        var text = "First: x\r\n"
        for _ in 0..<Int.random(in: 0...5, using: &random) {
            text += lines.randomElement(using: &random) ?? ""
            text += random.next() % 4 == 0 ? "\n" : "\r\n"
        }
        return text + (random.next() % 4 == 0 ? "\n" : "\r\n")
    }

    private static func damage(_ bytes: inout [UInt8], using random: inout SeededRandom) {
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let byte: UInt8? = [0, 9, 10, 13, 32, 44, 53, 58, 127, 255].randomElement(
                using: &random
            )
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = byte ?? 0
        }
    }
}
