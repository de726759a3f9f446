import CacheTestSupport
import Testing

@testable import HTTPCaching

@Suite("Stored facts, RFC 9111 §4.2.3")
struct StoredFactsTests {
    private static func initialAge(
        _ lines: Lines,
        requestDelay: Int64 = 0
    ) -> UInt32 {
        StoredFacts.correctedInitialAge(
            Scene(lines).response,
            requestTimeSeconds: Scene.now - requestDelay,
            responseTimeSeconds: Scene.now
        )
    }

    @Test("§4.2.3: apparent age, age value and delay")
    func correctedInitialAge() {
        #expect(Self.initialAge([]) == 0)
        #expect(Self.initialAge([("Date", Scene.date(-30))]) == 30)
        #expect(Self.initialAge([("Date", Scene.date(30))]) == 0)
        #expect(Self.initialAge([("Age", "10")]) == 10)
        #expect(Self.initialAge([("Age", "10")], requestDelay: 5) == 15)
        #expect(Self.initialAge([("Age", "10"), ("Date", Scene.date(-30))], requestDelay: 5) == 30)
        #expect(Self.initialAge([("Age", "40"), ("Date", Scene.date(-30))], requestDelay: 5) == 45)
        #expect(Self.initialAge([], requestDelay: -5) == 0)
        #expect(Self.initialAge([("Date", "foo")], requestDelay: 3) == 3)
        #expect(Self.initialAge([("Age", "99999999999")]) == 2_147_483_648)
    }

    @Test(
        "§5.1: Age is the first member of the first line; what is no number is ignored",
        arguments: [
            Row("plain", ["7200"], UInt32(7_200)),
            Row("list", ["7200, 0"], 7_200),
            Row("list, the other way round", ["0, 7200"], 0),
            Row("two lines", ["7200", "0"], 7_200),
            Row("two lines, the other way round", ["0", "7200"], 0),
            Row("letters", ["abc"], 0),
            Row("negative", ["-7200"], 0),
            Row("fraction", ["7200.0"], 0),
            Row("parameter", ["7200;foo=bar"], 0),
            Row("quoted", ["\"7200\""], 0),
            Row("empty", [""], 0),
            Row("2^31 - 1", ["2147483647"], 2_147_483_647),
            Row("2^31", ["2147483648"], 2_147_483_648),
            Row("2^31 + 1", ["2147483649"], 2_147_483_648),
            Row("a faulty first member hides the second", ["abc, 7200"], 0),
        ]
    )
    func ageField(_ row: Row<[String], UInt32>) {
        #expect(Self.initialAge(row.input.map { ("Age", $0) }) == row.expected)
    }

    @Test("§4.2.3: current age grows with the time in store")
    func currentAge() {
        let stored = Scene([("Cache-Control", "max-age=60"), ("Age", "10")]).stored
        #expect(stored.ageSeconds(at: Scene.now) == 10)
        #expect(stored.ageSeconds(at: Scene.now + 49) == 59)
        #expect(stored.isFresh(at: Scene.now + 49))
        #expect(!stored.isFresh(at: Scene.now + 50))
        #expect(stored.stalenessSeconds(at: Scene.now + 55) == 5)
    }

    @Test("A clock that runs backwards makes nothing younger than it came")
    func clockBackwards() {
        let stored = Scene([("Cache-Control", "max-age=60"), ("Age", "10")]).stored
        #expect(stored.ageSeconds(at: Scene.now - 1_000) == 10)
        #expect(stored.ageSeconds(at: .min) == 10)
        #expect(stored.ageSeconds(at: .max) == 10 + 2_147_483_648)
    }

    @Test(
        "§5.2.2: what the directives become",
        arguments: [
            Row("no-cache", "no-cache", StoredFacts.Flags.noCache),
            Row("no-cache in any case", "No-CaChE", .noCache),
            Row("no-cache with an argument that names nothing", "no-cache=\"\"", .noCache),
            Row("no-cache with fields", "no-cache=\"a, b\"", []),
            Row("no-cache with a bare name", "no-cache=a", []),
            Row("both forms", "no-cache=a, no-cache", .noCache),
            Row("must-revalidate", "must-revalidate", .mustRevalidate),
            Row("must-revalidate with an argument", "must-revalidate=1", .mustRevalidate),
            Row("proxy-revalidate", "proxy-revalidate", .mustRevalidate),
            Row("s-maxage", "s-maxage=1", .mustRevalidate),
            Row("immutable", "immutable", .immutable),
            Row("no-transform: nothing is ever transformed", "no-transform", []),
            Row("private with fields", "private=\"a\"", []),
            Row("stale-while-revalidate", "stale-while-revalidate=1", .hasStaleWhileRevalidate),
            Row("stale-if-error", "stale-if-error=1", .hasStaleIfError),
            Row("unknown ones", "no-cached, xno-cache, foo=no-cache, \"no-cache\"", []),
            Row("a malformed no-cache counts", "no-cache =x", .noCache),
        ] as [Row<String, StoredFacts.Flags>]
    )
    func flagsOfASharedCache(_ row: Row<String, StoredFacts.Flags>) {
        #expect(Scene([("Cache-Control", row.input)]).stored.flags == row.expected)
    }

    @Test("§5.2.2: what is for shared caches only")
    func flagsOfAPrivateCache() {
        for control in ["proxy-revalidate", "s-maxage=1", "private=\"a\""] {
            let scene = Scene([("Cache-Control", control)], rules: .private)
            #expect(scene.stored.flags.isEmpty, "\(control)")
        }
        let must = Scene([("Cache-Control", "must-revalidate")], rules: .private)
        #expect(must.stored.flags == .mustRevalidate)
    }

    @Test("Validators and parts")
    func flagsOfTheHead() {
        func flags(_ lines: Lines, _ status: Int = 200) -> StoredFacts.Flags {
            Scene(lines, status: status).stored.flags
        }
        #expect(flags([("ETag", "\"a\"")]) == [.hasStrongValidator, .hasAnyValidator])
        #expect(flags([("ETag", "W/\"a\"")]) == .hasAnyValidator)
        #expect(flags([("ETag", "a")]) == .hasAnyValidator)
        #expect(flags([("ETag", "")]) == [])
        #expect(flags([("Last-Modified", Scene.date(0))]).contains(.hasAnyValidator))
        #expect(!flags([("Last-Modified", Scene.date(0))]).contains(.hasStrongValidator))
        let byDate: StoredFacts.Flags = [.hasStrongValidator, .hasStrongDate, .hasAnyValidator]
        #expect(flags([("Last-Modified", Scene.date(-1))]) == byDate)
        #expect(flags([], 206) == .isPartial)
    }

    @Test("The bytes are as the table in the type says")
    func goldenBytes() {
        let facts = StoredFacts(
            status: 0x0102,
            flags: .init(rawValue: 0x1_0605),
            responseTimeSeconds: 0x0102_0304_0506_0708,
            correctedInitialAgeSeconds: 0x1112_1314,
            freshnessLifetimeSeconds: 0x2122_2324,
            staleWhileRevalidateSeconds: 0x3132_3334,
            staleIfErrorSeconds: 0x4142_4344,
            dateSeconds: 0x5152_5354_5556_5758,
            lastModifiedSeconds: nil
        )
        var bytes = [UInt8](repeating: 0xEE, count: StoredFacts.encodedBytes + 1)
        bytes.withUnsafeMutableBytes { facts.encode(into: $0) }
        let expected: [UInt8] = [
            1, 0, 0x02, 0x01, 0x05, 0x06, 0x01, 0,
            0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
            0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21,
            0x34, 0x33, 0x32, 0x31, 0x44, 0x43, 0x42, 0x41,
            0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51,
            0, 0, 0, 0, 0, 0, 0, 0x80,
            0xEE,
        ]
        #expect(bytes == expected)
        #expect(bytes.withUnsafeBytes { StoredFacts(decoding: $0) } == facts)
    }

    @Test("What encode would not write is refused")
    func decodingRefuses() {
        var bytes = [UInt8](repeating: 0, count: StoredFacts.encodedBytes)
        let facts = Scene([("Cache-Control", "max-age=60")]).stored
        bytes.withUnsafeMutableBytes { facts.encode(into: $0) }
        func decoded(_ change: (inout [UInt8]) -> Void) -> StoredFacts? {
            var copy = bytes
            change(&copy)
            return copy.withUnsafeBytes { StoredFacts(decoding: $0) }
        }
        #expect(decoded { _ in } == facts)
        #expect(decoded { $0[0] = 2 } == nil)
        #expect(decoded { $0[1] = 1 } == nil)
        #expect(decoded { $0[7] = 0x80 } == nil)
        for offset in [19, 23, 27, 31] { #expect(decoded { $0[offset] = 0xFF } == nil) }
        for count in 0..<StoredFacts.encodedBytes {
            #expect(decoded { $0.removeLast($0.count - count) } == nil)
        }
    }

    @Test("Facts survive their bytes", arguments: 0..<64 as Range<UInt64>)
    func roundTrip(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        func seconds() -> UInt32 { UInt32.random(in: 0...DeltaSeconds.maximum, using: &random) }
        let facts = StoredFacts(
            status: .random(in: 100...999, using: &random),
            flags: .init(rawValue: .random(in: 0..<(1 << 17), using: &random)),
            responseTimeSeconds: .random(in: .min ... .max, using: &random),
            correctedInitialAgeSeconds: seconds(),
            freshnessLifetimeSeconds: seconds(),
            staleWhileRevalidateSeconds: seconds(),
            staleIfErrorSeconds: seconds(),
            dateSeconds: .random(in: .min ... .max, using: &random),
            lastModifiedSeconds: Bool.random(using: &random)
                ? .random(in: (.min + 1) ... .max, using: &random) : nil
        )
        var bytes = [UInt8](repeating: 0, count: StoredFacts.encodedBytes)
        bytes.withUnsafeMutableBytes { facts.encode(into: $0) }
        #expect(bytes.withUnsafeBytes { StoredFacts(decoding: $0) } == facts)
        _ = facts.ageSeconds(at: .random(in: .min ... .max, using: &random))
    }
}
