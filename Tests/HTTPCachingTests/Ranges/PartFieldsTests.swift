import Testing

@testable import HTTPCaching

@Suite("The fields of a part, RFC 9110 §15.3.7")
struct PartFieldsTests {
    private static let names = ["Content-Length", "Server", "CONTENT-RANGE", "Content-Type", "Age"]

    @Test("they are those of the whole, with two fields set one after the other")
    func asIfSetByName() {
        let bodies = [
            (0..<1, 1), (5..<9, 10), (0..<Int.max, Int.max), (Int.max - 1..<Int.max, Int.max),
        ]
        for seed in 0..<1_000 {
            // The digits of the seed choose up to four lines, in any order and number.
            let lines = [1, 5, 25, 125].prefix(seed % 5).map { (Self.names[seed / $0 % 5], "7") }
            let (range, size) = bodies[seed % bodies.count]
            var set = FieldSection(lines)
            set.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)")
            set.set("Content-Length", "\(range.count)")
            let split = seed % (lines.count + 1)
            var part = PartFields(range, of: size, reserving: seed)
            FieldSection(Array(lines[..<split])).withUnsafeBytes { part.append($0) }
            FieldSection(Array(lines[split...])).withUnsafeBytes { part.append($0) }
            #expect(part.finish() == set)
        }
    }
}
