import CacheTestSupport
import RESP
import Testing

@Suite struct RESPParserTests {
    @Test(
        arguments: [
            ("+OK\r\n", .simple("OK")), ("+\r\n", .simple("")), ("-ERR no\r\n", .error("ERR no")),
            (":0\r\n", .integer(0)), (":-12\r\n", .integer(-12)), (":+7\r\n", .integer(7)),
            (":9223372036854775807\r\n", .integer(.max)),
            (":-9223372036854775808\r\n", .integer(.min)), ("$-1\r\n", .nilBulk),
            ("$0\r\n\r\n", .bulk([])), ("$3\r\na\r\n\r\n", .bulk(Array("a\r\n".utf8))),
            ("*-1\r\n", .nilArray), ("*0\r\n", .array([])),
            ("*2\r\n:1\r\n$-1\r\n", .array([.integer(1), .nilBulk])),
            (
                "*2\r\n*1\r\n*0\r\n*2\r\n+a\r\n-b\r\n",
                .array([.array([.array([])]), .array([.simple("a"), .error("b")])])
            ),
        ] as [(String, RESPValue)]
    )
    func replyIsRead(text: String, value: RESPValue) {
        for pieceBytes in 1...text.utf8.count {
            #expect(Reading(text, pieceBytes: pieceBytes) == Reading(values: [value]))
        }
    }

    @Test(
        arguments: [
            ("HTTP/1.1 400 Bad Request\r\n", .unknownType(0x48)), ("\r\n", .unknownType(0x0D)),
            ("+OK\n", .malformedLineEnd), ("+a\rb\r\n", .malformedLineEnd),
            (":\r\n", .malformedNumber(type: 0x3A)), (":-\r\n", .malformedNumber(type: 0x3A)),
            ("*-0\r\n", .malformedNumber(type: 0x2A)),
            (":1x\r\n", .malformedNumber(type: 0x3A)), (":1 \r\n", .malformedNumber(type: 0x3A)),
            (":9223372036854775808\r\n", .malformedNumber(type: 0x3A)),
            (":-9223372036854775809\r\n", .malformedNumber(type: 0x3A)),
            ("$000000000000000000001\r\n", .malformedNumber(type: 0x24)),
            ("$-2\r\n", .negativeLength(-2)), ("*-2\r\n", .negativeLength(-2)),
            ("$1\r\nab\r\n", .bulkEndMissing), ("$1\r\na\rb", .bulkEndMissing),
            ("*1\r\n!", .unknownType(0x21)),
        ] as [(String, RESPFault)]
    )
    func malformedReplyIsRefused(text: String, fault: RESPFault) {
        for pieceBytes in 1...text.utf8.count {
            #expect(Reading(text, pieceBytes: pieceBytes).fault == fault, "\(pieceBytes)")
        }
    }

    @Test func severalRepliesAreReadInOrder() {
        let values: [RESPValue] = [.simple("OK"), .bulk([1, 2, 13, 10]), .array([.integer(3)])]
        let bytes = values.flatMap(\.encoded)
        for pieceBytes in 1...bytes.count {
            #expect(Reading(bytes, pieceBytes: pieceBytes) == Reading(values: values))
        }
    }

    @Test(arguments: 0..<256)
    func anySplitGivesTheSameValues(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let values = (0..<8).map { _ in RESPValue.random(&random, depth: 3) }
        var bytes = values.flatMap(\.encoded)
        #expect(Reading(bytes, pieceBytes: bytes.count) == Reading(values: values))
        for isDamaged in [false, true] {
            if isDamaged {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8(random.next() & 127)
            }
            let whole = Reading(bytes, pieceBytes: bytes.count)
            for pieceBytes in [1, 2, 3, 7, 64] {
                #expect(Reading(bytes, pieceBytes: pieceBytes) == whole)
            }
            let cuts = Set((0..<10).map { _ in Int.random(in: 0...bytes.count, using: &random) })
            #expect(Reading(bytes, cuts: cuts.sorted()) == whole)
        }
    }

    @Test func truncatedReplyIsNoValue() {
        let bytes = RESPValue.array([.bulk([1, 2, 3]), .simple("x"), .array([.nilBulk])]).encoded
        for count in 0..<bytes.count {
            #expect(Reading(Array(bytes[..<count]), pieceBytes: 5) == Reading(values: []))
        }
    }

    @Test func refusedParserStaysRefused() {
        var parser = RESPParser()
        let fault = RESPParser.Step.refused(.unknownType(0x58))
        #expect(parser.step("X") == fault)
        #expect(parser.step("+OK\r\n") == fault)
        #expect(!parser.isBetweenReplies)
    }

    @Test func parserKnowsWhetherItIsBetweenReplies() {
        var parser = RESPParser()
        #expect(parser.isBetweenReplies)
        for text in ["*", "1\r", "\n", "$2\r\n", "ab\r"] {
            #expect(parser.step(text) == .needsMore)
            #expect(!parser.isBetweenReplies)
        }
        #expect(parser.step("\n") == .value(.array([.bulk([0x61, 0x62])]), end: 1))
        #expect(parser.isBetweenReplies)
    }

    /// A quadratic parser takes half a minute for this, a linear one under a sanitizer, on a processor
    /// that others use, five seconds.
    @Test func byteByByteIsLinear() {
        let values: [RESPValue] = [
            .bulk([UInt8](repeating: 7, count: 1 << 20)),
            .array([RESPValue](repeating: .integer(5), count: 1 << 16)),
            .simple(String(repeating: "x", count: 1 << 15)),
        ]
        let bytes = values.flatMap(\.encoded)
        let start = ContinuousClock.now
        let reading = Reading(bytes, pieceBytes: 1)
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        print("\(bytes.count) bytes, one by one: \(seconds) s")
        #expect(reading == Reading(values: values))
        #expect(seconds < 20)
    }

    @Test func bytesThatAreNotUTF8AreReplacedInTexts() {
        let bytes: [UInt8] = [0x2B, 0xFF, 0x0D, 0x0A]
        #expect(Reading(bytes, pieceBytes: 4).values == [.simple("\u{FFFD}")])
    }

    @Test func codeOfAnErrorIsAWord() {
        #expect(RESPValue.error("MOVED 1 a:2").isError("MOVED"))
        #expect(RESPValue.error("LOADING").isError("LOADING"))
        #expect(!RESPValue.error("MOVEDX 1").isError("MOVED"))
        #expect(!RESPValue.simple("MOVED").isError("MOVED"))
    }
}
