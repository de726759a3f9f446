import CacheTestSupport
import Testing

@testable import HTTPCaching

@Suite("Ranges, RFC 9110 §14")
struct RangeSetTests {
    private static func resolve(_ text: String, _ size: Int = 10) -> RangeSet.Resolution {
        RangeSet(text)?.resolve(bodySize: size) ?? .whole
    }

    @Test(
        "§14.1.2: one range of a body of ten bytes",
        arguments: [
            Row("first bytes", "bytes=0-4", RangeSet.Resolution.single(0..<5)),
            Row("one byte", "bytes=3-3", .single(3..<4)),
            Row("to the end", "bytes=4-", .single(4..<10)),
            Row("all of it", "bytes=0-", .single(0..<10)),
            Row("past the end", "bytes=4-99", .single(4..<10)),
            Row("past the end, 2^63", "bytes=4-9223372036854775808", .single(4..<10)),
            Row("past the end, 2^64", "bytes=4-18446744073709551616", .single(4..<10)),
            Row("starting past the end", "bytes=10-", .unsatisfiable),
            Row("starting at 2^63", "bytes=9223372036854775808-", .unsatisfiable),
            Row(
                "starting at 2^64",
                "bytes=18446744073709551616-18446744073709551617",
                .unsatisfiable
            ),
            Row("the last bytes", "bytes=-4", .single(6..<10)),
            Row("more than there are", "bytes=-99", .single(0..<10)),
            Row("2^64 last bytes", "bytes=-18446744073709551616", .single(0..<10)),
            Row("no last bytes", "bytes=-0", .unsatisfiable),
            Row("unit in any case", "BYTES=0-4", .single(0..<5)),
            Row("spaces between members", "bytes= 0-4 ,", .single(0..<5)),
            Row("leading zeros", "bytes=00-04", .single(0..<5)),
            Row("another unit", "seconds=0-4", .whole),
            Row("no unit", "0-4", .whole),
            Row("backwards", "bytes=4-0", .whole),
            Row("no numbers", "bytes=-", .whole),
            Row("letters", "bytes=a-b", .whole),
            Row("sign", "bytes=+1-4", .whole),
            Row("negative", "bytes=--4", .whole),
            Row("space inside", "bytes=0 - 4", .whole),
            Row("hexadecimal", "bytes=0x0-0x4", .whole),
            Row("nothing", "bytes=", .whole),
            Row("only commas", "bytes=,,", .whole),
            Row("one faulty among good ones", "bytes=0-1,x", .whole),
        ]
    )
    func one(_ row: Row<String, RangeSet.Resolution>) {
        #expect(Self.resolve(row.input) == row.expected)
    }

    @Test(
        "§14.2: several ranges",
        arguments: [
            Row(
                "apart, in the order asked for",
                "bytes=6-7,0-1",
                RangeSet.Resolution.multi([6..<8, 0..<2])
            ),
            Row("one cannot be had", "bytes=0-1,20-30", .single(0..<2)),
            Row("none can be had", "bytes=10-11,20-30", .unsatisfiable),
            Row("touching ones are joined", "bytes=0-1,2-3", .single(0..<4)),
            Row("overlapping ones are joined", "bytes=0-5,3-7", .single(0..<8)),
            Row("joined, then sorted", "bytes=8-8,0-3,2-5", .multi([0..<6, 8..<9])),
            Row("more than two overlap", "bytes=0-5,3-7,4-8", .whole),
            Row("the same thrice", "bytes=0-,0-,0-", .whole),
            Row("suffix and start", "bytes=0-0,-1", .multi([0..<1, 9..<10])),
        ]
    )
    func several(_ row: Row<String, RangeSet.Resolution>) {
        #expect(Self.resolve(row.input) == row.expected)
    }

    @Test("The number of ranges is bounded")
    func bounded() {
        func list(_ count: Int) -> String {
            "bytes=" + (0..<count).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ",")
        }
        #expect(RangeSet(list(RangeSet.rangesMax))?.specs.count == RangeSet.rangesMax)
        #expect(RangeSet(list(RangeSet.rangesMax + 1)) == nil)
    }

    @Test("An empty body")
    func emptyBody() {
        #expect(Self.resolve("bytes=0-", 0) == .unsatisfiable)
        #expect(Self.resolve("bytes=0-0", 0) == .unsatisfiable)
        #expect(Self.resolve("bytes=-1", 0) == .whole)
        #expect(Self.resolve("bytes=-0", 0) == .unsatisfiable)
    }

    @Test("Exactly one Range line counts")
    func lines() {
        let range = ("Range", "bytes=0-1")
        #expect(RangeSet(FieldSection([range])) != nil)
        #expect(RangeSet(FieldSection([range, range])) == nil)
        #expect(RangeSet(FieldSection()) == nil)
    }

    @Test(
        "What is resolved lies in the body, covers what was asked, and overlaps nowhere",
        arguments: 0..<64 as Range<UInt64>
    )
    func model(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<40 {
            let size = Int.random(in: 0...20, using: &random)
            var wanted: Set<Int> = []
            let parts = (0..<Int.random(in: 1...4, using: &random)).map { _ -> String in
                let first = Int.random(in: 0...24, using: &random)
                let last = first + Int.random(in: 0...6, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0:
                    wanted.formUnion(max(0, size - first)..<size)
                    return "-\(first)"
                case 1:
                    if first < size { wanted.formUnion(first..<size) }
                    return "\(first)-"
                default:
                    if first < size { wanted.formUnion(first...min(last, size - 1)) }
                    return "\(first)-\(last)"
                }
            }
            let text = "bytes=" + parts.joined(separator: ",")
            #expect(RangeSet(text)?.resolveAll(bodySize: size) == Self.resolve(text, size))
            let ranges: [Range<Int>]
            switch Self.resolve(text, size) {
            case .whole: continue
            case .unsatisfiable: ranges = []
            case .single(let range): ranges = [range]
            case .multi(let several): ranges = several
            }
            let covered = ranges.flatMap { Array($0) }
            #expect(Set(covered) == wanted, "\(text) of \(size)")
            #expect(covered.count == wanted.count, "\(text) of \(size)")
        }
    }
}

@Suite("Content-Range, RFC 9110 §14.4")
struct ContentRangeTests {
    @Test(
        "What is one",
        arguments: [
            Row("known size", "bytes 0-4/10", ContentRange(range: 0..<5, bodySize: 10)),
            Row("unknown size", "bytes 42-1233/*", ContentRange(range: 42..<1_234, bodySize: nil)),
            Row("unsatisfied", "bytes */47022", ContentRange(unsatisfiedBodySize: 47_022)),
            Row("to the last byte", "bytes 9-9/10", ContentRange(range: 9..<10, bodySize: 10)),
            Row("unit in any case", "Bytes 0-0/1", ContentRange(range: 0..<1, bodySize: 1)),
        ]
    )
    func sound(_ row: Row<String, ContentRange>) {
        #expect(ContentRange(row.input) == row.expected)
        #expect(ContentRange(row.expected.text) == row.expected)
    }

    @Test(
        "What is none",
        arguments: [
            "", "bytes", "bytes ", "bytes 0-4", "bytes 5-4/10", "bytes 0-10/10", "bytes */*",
            "0-4/10",
            "seconds 0-4/10", "bytes=0-4/10", "bytes -4/10", "bytes 0-/10", "bytes a-b/10",
            "bytes 0-4/x", "bytes 0-9223372036854775807/*", "bytes 0-9223372036854775808/*",
            "bytes /1",
        ]
    )
    func malformed(_ text: String) {
        #expect(ContentRange(text) == nil)
    }
}
