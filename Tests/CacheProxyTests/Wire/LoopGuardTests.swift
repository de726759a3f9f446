import HTTPCaching
import Testing

@testable import CacheProxy

@Suite struct LoopGuardTests {
    private static func list(_ member: String, _ count: Int) -> String {
        Array(repeating: member, count: count).joined(separator: ",")
    }

    static let rows: [(String, String, Bool)] = [
        ("Via", "1.1 me", true), ("via", "1.0 a, HTTP/1.1 me (x, y)", true),
        ("Via", "1.1 mee", false), ("Via", "me 1.1", false), ("Via", "1.1", false),
        ("Via", "1.1 \t me", true), ("Via", "1.1 x me", false), ("CDN-Loop", "me x", true),
        ("CDN-Loop", "x; a=b, me; v=1", true),
        ("CDN-Loop", "mee", false), ("X-Via", "1.1 me", false),
        ("Via", "\", 1.1 me", true), ("CDN-Loop", "\", me", true), ("CDN-Loop", ", ,me", true),
        ("Via", list("1.1 x", 21), true), ("Via", list("1.1 x", 20), false),
        ("CDN-Loop", list("x", 21), true), ("CDN-Loop", list("x", 20), false),
        ("CDN-Loop", "\"" + list("x", 21), true),
    ]

    @Test(arguments: rows)
    func ownNameAndTooManyHopsAreALoop(_ row: (String, String, Bool)) {
        #expect(LoopGuard(name: "me").isLooping(FieldSection([(row.0, row.1)])) == row.2)
    }

    /// A proxy that adds itself to both fields is one hop.
    @Test(arguments: [
        (20, 20, false), (0, 20, false), (20, 21, true), (21, 20, true), (21, 0, true),
    ])
    func hopsOfTheTwoFieldsAreNotAdded(_ row: (via: Int, loop: Int, isLooping: Bool)) {
        var lines = (0..<row.via).map { _ in ("Via", "1.1 x") }
        lines += (0..<row.loop).map { _ in ("CDN-Loop", "x") }
        #expect(LoopGuard(name: "me").isLooping(FieldSection(lines)) == row.isLooping)
    }
}
