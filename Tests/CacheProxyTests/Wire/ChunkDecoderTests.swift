import CacheTestSupport
import Testing

@testable import CacheProxy

@Suite struct ChunkDecoderTests {
    @Test(arguments: [
        ("0\r\n\r\n", ""), ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5\r\nhello\r\n00006;a=b; c=\"d\\\";\"\r\n world\r\n0\r\n\r\n", "hello world"),
        ("A\r\n0123456789\r\n0\r\nX-T: y\r\nZ:\r\n\r\n", "0123456789"),
        ("a \r\n", nil), ("5;\r\nhello\r\n0\r\n\r\n", "hello"),
    ])
    func wellFormedBodyIsDecoded(_ row: (String, String?)) {
        guard let expected = row.1 else {
            #expect(Self.decode(row.0, pieces: [row.0.utf8.count]).fault == .malformed)
            return
        }
        let whole = Self.decode(row.0, pieces: [row.0.utf8.count])
        #expect(whole.text == expected && whole.isDone)
        let bytewise = Self.decode(row.0, pieces: Array(repeating: 1, count: row.0.utf8.count))
        #expect(bytewise.text == expected && bytewise.isDone)
    }

    @Test(arguments: [
        "\r\n", "g\r\n", "-5\r\nhello\r\n", "+5\r\n", "0x5\r\nhello\r\n", " 5\r\nhello\r\n",
        "5\nhello\n0\n\n", "5\r\nhello0\r\n\r\n", "5\r\nhelloX\r\n", "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r0\r\n\r\n", "5\r\r\nhello\r\n", "10000000000000000\r\n",
        "fffffffffffffffff\r\n", "5\r\nhelloX\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n", "5;a\"\r\nhello\r\n", "5\r\nhello\r\n0\r\nX y\r\n\r\n",
        "5\r\nhello\r\n0\r\n x: y\r\n\r\n", "5\r\nhello\r\n0\r\nx: y\n\r\n",
        "5;\(String(repeating: "a", count: 300))\r\n", "5 5\r\nhello\r\n", "0\r\n\n", "0\r\n\r\r",
        "0\r\nX: \(String(repeating: "a", count: 9_000))", "5;a=\0\r\n", "5;\"a\0\"\r\n",
    ])
    func malformedBodyIsRefused(_ text: String) {
        #expect(Self.decode(text, pieces: [text.utf8.count]).fault == .malformed)
        let bytes = Array(repeating: 1, count: text.utf8.count)
        #expect(Self.decode(text, pieces: bytes).fault == .malformed)
    }

    @Test(arguments: UInt64(0)..<64)
    func anySplitGivesTheSameBytes(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var encoded = ""
        var plain = ""
        for _ in 0..<Int.random(in: 0...8, using: &random) {
            let count = Int.random(in: 1...70, using: &random)
            let data = String(
                (0..<count).map { _ in "\r\n0aZ;".randomElement(using: &random) ?? "x" }
            )
            encoded += String(data.utf8.count, radix: 16) + "\r\n" + data + "\r\n"
            plain += data
        }
        encoded += "0\r\n\r\n"
        var pieces: [Int] = []
        var rest = encoded.utf8.count
        while rest > 0 {
            let piece = min(rest, Int.random(in: 1...40, using: &random))
            pieces.append(piece)
            rest -= piece
        }
        let result = Self.decode(encoded, pieces: pieces)
        #expect(result.text == plain)
        #expect(result.isDone)
        #expect(result.usedCount == encoded.utf8.count)
    }

    @Test func bytesAfterTheBodyAreNotRead() {
        let result = Self.decode("1\r\na\r\n0\r\n\r\nGET /", pieces: [100])
        #expect(result.isDone)
        #expect(result.usedCount == 11)
    }

    /// The length of other content is judged with its head.
    @Test func contentLongerThanItsLimitIsRefused() {
        let bytes = Array("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n".utf8)
        var roomy = BodyDecoder(.chunked, of: .request(contentBytesMax: 6))
        #expect(roomy.decode(bytes.span, from: 0) == .data(3..<8))
        #expect(roomy.decode(bytes.span, from: 8) == .data(13..<14))
        #expect(roomy.decode(bytes.span, from: 14) == .end(bytes.count) && roomy.isAtEnd)
        var tight = BodyDecoder(.chunked, of: .request(contentBytesMax: 5))
        #expect(tight.decode(bytes.span, from: 0) == .data(3..<8))
        #expect(tight.decode(bytes.span, from: 8) == .refused(.tooLarge))
    }

    struct Outcome {
        var text = ""
        var isDone = false
        var usedCount = 0
        var fault: ChunkDecoder.Fault?
    }

    static func decode(_ text: String, pieces: [Int]) -> Outcome {
        var outcome = Outcome()
        var decoder = ChunkDecoder(.request(contentBytesMax: .max))
        let bytes = Array(text.utf8)
        var content: [UInt8] = []
        var start = 0
        for piece in pieces {
            let end = min(bytes.count, start + piece)
            let given = Array(bytes[start..<end])
            var offset = 0
            feeding: while true {
                switch decoder.decode(given.span, from: offset) {
                case .data(let range):
                    content += given[range]
                    offset = range.upperBound
                case .needsMore: break feeding
                case .end(let end):
                    outcome.isDone = true
                    outcome.usedCount = start + end
                    outcome.text = String(decoding: content, as: UTF8.self)
                    return outcome
                case .refused(let fault):
                    outcome.fault = fault
                    return outcome
                }
            }
            start = end
        }
        outcome.text = String(decoding: content, as: UTF8.self)
        return outcome
    }
}
