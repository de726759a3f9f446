import CacheTestSupport
import Testing

@testable import CacheProxy

@Suite struct BodyDecoderTests {
    struct Outcome: Equatable {
        var text = ""
        /// The bytes up to the end of the body.
        var usedCount: Int?
        var fault: ChunkDecoder.Fault?
        /// Whether the end of the connection is the end of the body.
        var endsWithConnection = false
    }

    private static let response = ChunkDecoder.Message.response(
        trailerBytesMax: ResponseLimits().trailerBytesMax
    )

    @Test(arguments: [
        // As every server sends it.
        ("0\r\n\r\n", ""), ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("3;ext=1\r\nabc\r\n0\r\nX-Trailer: y\r\n\r\n", "abc"),
        ("A\r\n0123456789\r\n0\r\nX-T: y\r\nZ:\r\n\r\n", "0123456789"),
        ("5;a=b; c=\"d\\\";\"\r\nhello\r\n0\r\n\r\n", "hello"),
        // As some servers do.
        ("3\nabc\n0\n\n", "abc"), ("3\nabc\r\n0\r\n\n", "abc"), ("3\r\nabc\n0\nA: b\n\n", "abc"),
        ("3  \r\nabc\r\n0 \r\n\r\n", "abc"), ("3 \t;a\r\nabc\r\n0\r\n\r\n", "abc"),
        ("3;a/b=\"\r\nabc\r\n0\r\n\r\n", "abc"), ("3 \nabc\r\n0\r\n\r\n", "abc"),
        ("00000000000000000003\r\nabc\r\n00000000000000000000\r\n\r\n", "abc"),
    ])
    func chunkedBodyIsDecoded(_ row: (String, String)) {
        for stepBytes in [row.0.utf8.count, 1, 2, 3] {
            let outcome = Self.decode(row.0 + "HTTP/1.1", .chunked, stepBytes: stepBytes)
            #expect(outcome.text == row.1 && outcome.usedCount == row.0.utf8.count)
        }
    }

    @Test(arguments: [
        "\r\n", "g\r\n", "-5\r\nhello\r\n", "+5\r\n", "0x5\r\nhello\r\n", " 5\r\nhello\r\n",
        "\n", "5\r\nhello0\r\n\r\n", "5\r\nhelloX\r\n", "5\r\nhello\r0\r\n\r\n", "5\r\r\nhello\r\n",
        "5\r\nhello\r\r\n0\r\n\r\n", "5\rhello\r\n", "5zz\r\nhello\r\n", "5 5\r\nhello\r\n",
        "1000000000000000\r\n", "fffffffffffffffff\r\n", "5;a\nhello\r\n0\r\n\r\n",
        "5;a\u{1}\r\nhello\r\n", "5;a\0\r\nhello\r\n", "5;\"a\n\"\r\nhello\r\n",
        "0\r\nHTTP/1.1 200 OK\r\n\r\n", "0\r\nX y\r\n\r\n", "0\r\n x: y\r\n\r\n",
        "0\r\nx: \0\r\n\r\n", "0\r\nx: y\rz\r\n\r\n", "0\r\n\r\r", "0\r\r\n\r\n",
        "5;\(String(repeating: "a", count: 5_000))", "0\(String(repeating: "0", count: 5_000))",
        "0\r\nX: \(String(repeating: "a", count: 300_000))", "xyz\r\nabc\r\n",
    ])
    func malformedChunksAreRefused(_ text: String) {
        #expect(Self.decode(text, .chunked).fault == .malformed)
        #expect(Self.decode(text, .chunked, stepBytes: 1).fault == .malformed)
    }

    /// A request is decoded without the tolerance for origins.
    @Test(arguments: [
        "3\nabc\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n", "0\r\n\n",
        "3;a/b\r\nabc\r\n0\r\n\r\n", "0\r\nA: b\n\r\n", "0000000000000003\r\nabc\r\n0\r\n\r\n",
    ])
    func requestIsNotDecodedLikeAResponse(_ text: String) {
        #expect(Self.decode(text, .chunked).usedCount == text.utf8.count)
        var decoder = ChunkDecoder(.request(contentBytesMax: .max))
        let bytes = Array(text.utf8)
        var offset = 0
        while true {
            let step = decoder.decode(bytes.span, from: offset)
            guard case .data(let range) = step else {
                #expect(step == .refused(.malformed))
                return
            }
            offset = range.upperBound
        }
    }

    @Test func bodyOfKnownLengthEndsThere() {
        #expect(Self.decode("helloHTTP", .length(5)) == Outcome(text: "hello", usedCount: 5))
        #expect(Self.decode("HTTP", .length(0)) == Outcome(text: "", usedCount: 0))
        #expect(Self.decode("HTTP", .none) == Outcome(text: "", usedCount: 0))
        #expect(Self.decode("hel", .length(5)) == Outcome(text: "hel"))
    }

    @Test func endIsKnownWithoutAnotherByte() {
        #expect(BodyDecoder(.none, of: Self.response).isAtEnd)
        #expect(BodyDecoder(.length(0), of: Self.response).isAtEnd)
        #expect(!BodyDecoder(.length(1), of: Self.response).isAtEnd)
        #expect(!BodyDecoder(.chunked, of: Self.response).isAtEnd)
        var decoder = BodyDecoder(.length(2), of: Self.response)
        let step = decoder.decode([UInt8(1), 2, 3].span, from: 0)
        #expect(step == .data(0..<2) && decoder.isAtEnd)
    }

    @Test func bodyWithoutFramingEndsWithTheConnection() {
        let outcome = Self.decode("hello", .untilClose)
        #expect(outcome == Outcome(text: "hello", endsWithConnection: true))
        var decoder = BodyDecoder(.untilClose, of: Self.response)
        #expect(!decoder.isAtEnd)
        #expect(decoder.connectionEnded() && decoder.isAtEnd)
    }

    /// Every cut before the end is a truncation; a cut at the end is not.
    @Test(arguments: [
        ("5\r\nhello\r\n0\r\nA: b\r\n\r\n", BodyFraming.chunked), ("hello", .length(5)),
    ])
    func connectionThatEndsEarlyTruncatesTheBody(_ row: (String, BodyFraming)) {
        for count in 0...row.0.utf8.count {
            var decoder = BodyDecoder(row.1, of: Self.response)
            let bytes = Array(row.0.utf8.prefix(count))
            var offset = 0
            while case .data(let range) = decoder.decode(bytes.span, from: offset) {
                offset = range.upperBound
            }
            #expect(decoder.connectionEnded() == (count == row.0.utf8.count))
        }
    }

    @Test(arguments: UInt64(0)..<64)
    func anySplitGivesTheSameBytes(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var encoded = ""
        for _ in 0..<Int.random(in: 0...6, using: &random) {
            let data = String(repeating: "\r\n0;", count: Int.random(in: 1...20, using: &random))
            let ends = ["\r\n", "\n", " \r\n", ";x y\r\n"]
            encoded +=
                String(data.utf8.count, radix: 16) + (ends.randomElement(using: &random) ?? "")
            encoded += data + (random.next() % 2 == 0 ? "\r\n" : "\n")
        }
        encoded += "0\r\nA: b\n\r\n"
        var bytes = Array(encoded.utf8)
        if random.next() % 2 == 0 {
            bytes[Int.random(in: 0..<bytes.count, using: &random)] =
                [10, 13, 32, 48, 59].randomElement(using: &random) ?? 0
        }
        let text = String(decoding: bytes, as: UTF8.self)
        let whole = Self.decode(text, .chunked)
        for stepBytes in [1, 2, 7] {
            #expect(Self.decode(text, .chunked, stepBytes: stepBytes) == whole)
        }
    }

    static func decode(
        _ text: String,
        _ framing: BodyFraming,
        stepBytes: Int = .max
    ) -> Outcome {
        var outcome = Outcome()
        var decoder = BodyDecoder(framing, of: Self.response)
        let bytes = Array(text.utf8)
        var start = 0
        while start < bytes.count {
            let piece = Array(bytes[start...].prefix(stepBytes))
            var offset = 0
            feeding: while true {
                switch decoder.decode(piece.span, from: offset) {
                case .data(let range):
                    outcome.text += String(decoding: piece[range], as: UTF8.self)
                    offset = range.upperBound
                case .needsMore: break feeding
                case .end(let end):
                    outcome.usedCount = start + end
                    return outcome
                case .refused(let fault):
                    outcome.fault = fault
                    return outcome
                }
            }
            start += piece.count
        }
        outcome.endsWithConnection = decoder.connectionEnded()
        return outcome
    }
}
