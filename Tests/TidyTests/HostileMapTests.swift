import Testing

/// Checks `docs/hostile-map.md`, which names the tests of each fault, attack and repaired defect.
@Suite struct HostileMapTests {
    static let faultsAndAttacks: [Character: [Int]] = [
        "F": Array(1...18),
        "X": Array(1...26),
    ]
    /// Defects that a review found: E in the engine, D in the proxy.
    static let defects: [Character: [Int]] = [
        "E": Array(1...26),
        "D": Array(1...9) + Array(11...13),
    ]

    static func map() throws -> PromiseMap { try PromiseMap(path: "docs/hostile-map.md") }

    @Test func everyFaultAndAttackIsThereOnce() throws {
        try Self.map().checkRows(Self.faultsAndAttacks)
    }

    @Test func everyDefectIsThereOnceAndSaysHowItsTestsFailed() throws {
        let map = try Self.map()
        map.checkRows(Self.defects)
        for row in map.rows where Self.defects.keys.contains(row.name.first ?? " ") {
            #expect((row.failure ?? "").count > 10, "\(row.name) does not say how its tests failed")
        }
    }

    @Test func everyRowNamesTestsThatExist() throws { try Self.map().checkTests() }
}
