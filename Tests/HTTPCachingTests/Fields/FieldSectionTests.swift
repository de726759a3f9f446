import CacheTestSupport
import Testing

@testable import HTTPCaching

@Suite("Field section, RFC 9110 §5")
struct FieldSectionTests {
    private static let sample = FieldSection([("Via", "a"), ("ETag", "\"x\""), ("via", "b")])

    @Test func emptySectionHasNoBytes() {
        #expect(FieldSection().bytes.isEmpty)
        #expect(FieldSection().isEmpty)
        #expect(FieldSection().count == 0)
    }

    @Test func bytesAreAsTheTypeSays() {
        let fields = FieldSection([("Age", "12"), ("a", "")])
        #expect(
            fields.bytes == [
                3, 0, 2, 0, 0, 0, 0x41, 0x67, 0x65, 0x31, 0x32,
                1, 0, 0, 0, 0, 0, 0x61,
            ]
        )
    }

    @Test func namesAreFoundInAnyCase() {
        #expect(Self.sample.first("VIA") == "a")
        #expect(Self.sample.values("vIa") == ["a", "b"])
        #expect(Self.sample.combined("via") == "a, b")
        #expect(Self.sample.contains("etag"))
        #expect(Self.sample.contains(lowercased: "etag"))
        #expect(!Self.sample.contains("eta"))
        #expect(!Self.sample.contains("etags"))
        #expect(Self.sample.first("none") == nil)
        #expect(Self.sample.combined("none") == nil)
        #expect(Self.sample.count == 3)
    }

    @Test func sketchIncludesEachNameInAnyCase() {
        for name in ["Cache-Tag", "surrogate-key", "x", "_A", "CDN-Cache-Control"] {
            let sketch = FieldSection([("Server", ""), (name, "")]).nameSketch
            #expect(sketch.mayInclude(name.lowercased()))
            #expect(sketch.mayInclude(name.uppercased()))
        }
        #expect(!Self.sample.nameSketch.mayInclude("Cache-Tag"))
        #expect(!FieldSection().nameSketch.mayInclude("Via"))
    }

    @Test func linesAreVisitedInOrder() {
        var lines: [String] = []
        Self.sample.forEachLine { lines.append($0.name.string + "=" + $0.value.string) }
        #expect(lines == ["Via=a", "ETag=\"x\"", "via=b"])
    }

    @Test func settingReplacesInPlace() {
        var fields = FieldSection([("a", "1"), ("b", "2"), ("A", "3"), ("c", "4")])
        fields.set("a", "9")
        #expect(fields == FieldSection([("a", "9"), ("b", "2"), ("c", "4")]))
        fields.set("d", "5")
        #expect(fields.values("d") == ["5"])
        fields.remove("B")
        fields.removeAll { $0.equals(lowercased: "c") }
        #expect(fields == FieldSection([("a", "9"), ("d", "5")]))
    }

    @Test func valuesAreTrimmed() {
        #expect(FieldSection([("a", " \t1 2\t ")]).first("a") == "1 2")
        #expect(FieldSection([("a", " \t ")]).first("a") == "")
    }

    @Test(arguments: [
        ("", "x"), ("a b", "x"), ("a:", "x"), ("a\r\n", "x"), ("ä", "x"), ("a\0", "x"),
        ("a", "x\r\nSet-Cookie: y"), ("a", "x\ny"), ("a", "x\ry"), ("a", "x\0y"), ("a", "x\u{7F}"),
        ("a", "x\u{1}y"),
    ])
    func fieldThatWouldSmuggleALineIsRefused(_ name: String, _ value: String) {
        var fields = FieldSection([("k", "v")])
        let before = fields
        let isAppended = fields.append(name, value)
        let isSet = fields.set(name, value)
        #expect(!isAppended && !isSet)
        #expect(fields == before)
        #expect(!FieldSection.isValidName(name) || !FieldSection.isValidValue(value))
    }

    @Test func controlInAnOriginsValueBecomesASpace() {
        func cleaned(_ name: String, _ value: String) -> String {
            var fields = FieldSection()
            name.withByteRun { name in
                value.withByteRun { value in _ = fields.append(name: name, cleaning: value) }
            }
            return fields.description
        }
        #expect(cleaned("A", "x\r\nB: y") == "A: x  B: y\n")
        #expect(cleaned("Vary", "A\u{b}") == "Vary: A\n")
        #expect(cleaned("A", "\u{0}\u{7f}\tx\u{1}y\tz ") == "A: x y\tz\n")
        #expect(cleaned("A", "\u{1}") == "A: \n")
        #expect(cleaned("A\u{1}", "x\u{1}").isEmpty)
    }

    @Test func obsTextAndTabsAreValues() {
        var fields = FieldSection()
        let value: [UInt8] = [0x61, 0x09, 0xFF, 0x80, 0x62]
        value.withUnsafeBytes { value in
            Array("A".utf8).withUnsafeBytes { name in
                let isAppended = fields.append(nameBytes: name, valueBytes: value)
                #expect(isAppended)
            }
        }
        var found: [UInt8] = []
        fields.forEachValue(of: "a") { found = [UInt8]($0.buffer) }
        #expect(found == value)
    }

    @Test func longNamesAreRefused() {
        var fields = FieldSection()
        let longest = String(repeating: "n", count: FieldSection.nameBytesMax)
        let isTooLongAppended = fields.append(longest + "n", "x")
        let isLongestAppended = fields.append(longest, "x")
        #expect(!isTooLongAppended)
        #expect(isLongestAppended)
        #expect(fields.first(longest) == "x")
    }

    @Test func everyTruncationIsRefused() {
        let bytes = Self.sample.bytes
        let lineEnds = [0, 10, 23, 33]
        #expect(bytes.count == lineEnds.last)
        for count in 0...bytes.count {
            let decoded = bytes.prefix(count).withUnsafeBytes { FieldSection(decoding: $0) }
            #expect((decoded != nil) == lineEnds.contains(count), "\(count)")
        }
    }

    @Test func fieldsThatAppendRefusesAreNotDecoded() {
        func isDecoded(_ bytes: [UInt8]) -> Bool {
            bytes.withUnsafeBytes { FieldSection(decoding: $0) } != nil
        }
        #expect(isDecoded([1, 0, 1, 0, 0, 0, 0x61, 0x62]))
        #expect(!isDecoded([0, 0, 1, 0, 0, 0, 0x62]))
        #expect(!isDecoded([1, 0, 1, 0, 0, 0, 0x20, 0x62]))
        #expect(!isDecoded([1, 0, 1, 0, 0, 0, 0x61, 0x0A]))
        #expect(!isDecoded([1, 0, 1, 0, 0, 0, 0x61, 0x20]))
        #expect(!isDecoded([1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x61, 0x62]))
        #expect(!isDecoded([1, 0, 1, 0, 0, 0, 0x61, 0x62, 0]))
    }

    @Test("A section behaves like a list of pairs", arguments: 0..<64 as Range<UInt64>)
    func model(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let names = ["a", "A", "bb", "Bb", "x-long-name", "c"]
        var fields = FieldSection()
        var model: Lines = []
        for _ in 0..<60 {
            let name = names.randomElement(using: &random) ?? "a"
            let value = String(Int.random(in: 0...999, using: &random))
            let isSame: (String, String) -> Bool = { $0.lowercased() == $1.lowercased() }
            switch Int.random(in: 0..<6, using: &random) {
            case 0..<3:
                fields.append(name, value)
                model.append((name, value))
            case 3:
                fields.set(name, value)
                let place = model.firstIndex { isSame($0.0, name) } ?? model.count
                model.removeAll { isSame($0.0, name) }
                model.insert((name, value), at: place)
            case 4:
                fields.remove(name)
                model.removeAll { isSame($0.0, name) }
            default:
                fields.removeAll { $0.count == name.utf8.count }
                model.removeAll { $0.0.count == name.count }
            }
            #expect(fields == FieldSection(model))
            #expect(fields.count == model.count)
            #expect(fields.values(name) == model.filter { isSame($0.0, name) }.map(\.1))
            #if ENGINE_CHECKS
                fields.checkInvariants()
            #endif
        }
        #expect(fields.withUnsafeBytes { FieldSection(decoding: $0) } == fields)
    }
}
