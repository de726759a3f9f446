import CacheTestSupport
import Testing

@testable import HTTPCaching

@Suite("Parts of a body, RFC 9111 §3.4")
struct PartialBodyTests {
    private func expect(
        _ body: inout PartialBody,
        adding content: ContentRange,
        gives expected: PartialBody.Addition,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let addition = body.add(content)
        #expect(addition == expected, sourceLocation: sourceLocation)
    }

    @Test("§3.4: parts come together")
    func together() {
        var body = PartialBody()
        expect(&body, adding: ContentRange(range: 0..<5, bodySize: nil), gives: .added)
        #expect(!body.isComplete)
        #expect(body.missing(in: 0..<10) == [5..<10])
        expect(&body, adding: ContentRange(range: 7..<10, bodySize: 10), gives: .added)
        #expect(body.missing(in: 0..<10) == [5..<7])
        #expect(body.missing(in: 1..<6) == [5..<6])
        #expect(body.contains(1..<5))
        #expect(!body.contains(4..<8))
        expect(&body, adding: ContentRange(range: 5..<7, bodySize: 10), gives: .added)
        #expect(body.isComplete)
        #expect(body.heldBytes == 10)
        #expect(body.missing(in: 0..<10).isEmpty)
    }

    @Test("Parts of another size are of another representation")
    func contradictions() {
        var body = PartialBody()
        expect(&body, adding: ContentRange(range: 0..<5, bodySize: 10), gives: .added)
        expect(&body, adding: ContentRange(range: 5..<9, bodySize: 11), gives: .contradicts)
        expect(&body, adding: ContentRange(range: 5..<11, bodySize: nil), gives: .contradicts)
        expect(&body, adding: ContentRange(unsatisfiedBodySize: 10), gives: .contradicts)
        #expect(body.parts == [0..<5])
        var late = PartialBody()
        expect(&late, adding: ContentRange(range: 5..<20, bodySize: nil), gives: .added)
        expect(&late, adding: ContentRange(range: 0..<2, bodySize: 10), gives: .contradicts)
    }

    @Test("The number of islands is bounded, and bridging them makes room")
    func bounded() {
        var body = PartialBody(bodySize: 1_000)
        for island in 0..<PartialBody.partsMax {
            let range = (island * 4)..<(island * 4 + 2)
            expect(&body, adding: ContentRange(range: range, bodySize: 1_000), gives: .added)
        }
        let before = body
        expect(&body, adding: ContentRange(range: 900..<901, bodySize: 1_000), gives: .tooManyParts)
        #expect(body == before)
        expect(&body, adding: ContentRange(range: 2..<4, bodySize: 1_000), gives: .added)
        expect(&body, adding: ContentRange(range: 900..<901, bodySize: 1_000), gives: .added)
    }

    @Test func anEmptyBodyIsComplete() {
        #expect(PartialBody(bodySize: 0).isComplete)
        #expect(!PartialBody().isComplete)
    }

    @Test("The parts are what a set of positions would hold", arguments: 0..<64 as Range<UInt64>)
    func model(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let size = 40
        var body = PartialBody(bodySize: size)
        var held: Set<Int> = []
        for _ in 0..<30 {
            let lower = Int.random(in: 0..<size, using: &random)
            let upper = min(size, lower + Int.random(in: 1...5, using: &random))
            expect(&body, adding: ContentRange(range: lower..<upper, bodySize: size), gives: .added)
            held.formUnion(lower..<upper)
            #if ENGINE_CHECKS
                body.checkInvariants()
            #endif
            #expect(Set(body.parts.flatMap { Array($0) }) == held)
            #expect(body.heldBytes == held.count)
            #expect(body.isComplete == (held.count == size))
            let from = Int.random(in: 0..<size, using: &random)
            let wanted = from..<Int.random(in: from...size, using: &random)
            let missing = body.missing(in: wanted)
            #expect(Set(missing.flatMap { Array($0) }) == Set(wanted).subtracting(held))
            #expect(missing.allSatisfy { !$0.isEmpty })
            #expect(body.contains(wanted) == Set(wanted).isSubset(of: held))
        }
    }

    @Test(
        "§3.4: only parts with the same strong validator are combined",
        arguments: [
            Row("the same tag", ([("ETag", "\"a\"")], [("ETag", "\"a\"")]), true),
            Row("another tag", ([("ETag", "\"a\"")], [("ETag", "\"b\"")]), false),
            Row("weak tags", ([("ETag", "W/\"a\"")], [("ETag", "W/\"a\"")]), false),
            Row("one without", ([("ETag", "\"a\"")], []), false),
            Row("the other without", ([], [("ETag", "\"a\"")]), false),
            Row("none", ([], []), false),
            Row(
                "the same strong date",
                ([("Last-Modified", Scene.date(-9))], [("Last-Modified", Scene.date(-9))]),
                true
            ),
            Row(
                "another date",
                ([("Last-Modified", Scene.date(-9))], [("Last-Modified", Scene.date(-8))]),
                false
            ),
            Row(
                "a date as young as its response",
                ([("Last-Modified", Scene.date(0))], [("Last-Modified", Scene.date(0))]),
                false
            ),
        ] as [Row<(Lines, Lines), Bool>]
    )
    func combining(_ row: Row<(Lines, Lines), Bool>) {
        let dated = [("Date", Scene.date(0))]
        let mayCombine = PartialBody.mayCombine(
            stored: FieldSection(row.input.0 + dated),
            new: FieldSection(row.input.1 + dated)
        )
        #expect(mayCombine == row.expected)
    }
}

@Suite("multipart/byteranges, RFC 9110 §14.6")
struct MultipartByterangesTests {
    @Test("The layout, and its length to the byte")
    func layout() {
        let body = Array("0123456789".utf8)
        let layout = MultipartByteranges(
            boundary: "THIS",
            partType: "text/plain",
            bodySize: body.count,
            ranges: [6..<8, 0..<2]
        )
        var text = ""
        for (index, range) in layout.ranges.enumerated() {
            text += layout.head(ofPart: index) + String(decoding: body[range], as: UTF8.self)
        }
        text += layout.tail
        let expected = [
            "--THIS", "Content-Type: text/plain", "Content-Range: bytes 6-7/10", "", "67",
            "--THIS", "Content-Type: text/plain", "Content-Range: bytes 0-1/10", "", "01",
            "--THIS--", "",
        ]
        #expect(text == expected.joined(separator: "\r\n"))
        #expect(layout.contentLength == text.utf8.count)
        #expect(layout.contentType == "multipart/byteranges; boundary=THIS")
        let untyped = MultipartByteranges(
            boundary: "b",
            partType: nil,
            bodySize: 10,
            ranges: [0..<1]
        )
        #expect(untyped.head(ofPart: 0) == "--b\r\nContent-Range: bytes 0-0/10\r\n\r\n")
    }
}
