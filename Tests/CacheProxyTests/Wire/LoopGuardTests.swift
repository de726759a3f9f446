import HTTPCaching
import Testing

@testable import CacheProxy

@Suite struct LoopGuardTests {
    @Test(arguments: [
        ("Via", "1.1 me", true), ("via", "1.0 a, HTTP/1.1 me (x, y)", true),
        ("Via", "1.1 mee", false), ("Via", "me 1.1", false), ("Via", "1.1", false),
        ("Via", "1.1 \t me", true), ("Via", "1.1 x me", false), ("CDN-Loop", "me x", true),
        ("CDN-Loop", "x; a=b, me; v=1", true),
        ("CDN-Loop", "mee", false), ("X-Via", "1.1 me", false),
        ("Via", Array(repeating: "1.1 x", count: 21).joined(separator: ","), true),
        ("Via", Array(repeating: "1.1 x", count: 20).joined(separator: ","), false),
        ("CDN-Loop", Array(repeating: "x", count: 21).joined(separator: ","), true),
        ("CDN-Loop", Array(repeating: "x", count: 20).joined(separator: ","), false),
    ])
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
