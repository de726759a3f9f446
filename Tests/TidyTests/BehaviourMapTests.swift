import Testing

/// Checks `docs/behaviour-map.md`, which names the tests of each promised behaviour.
@Suite struct BehaviourMapTests {
    static let rows: [Character: [Int]] = [
        "P": Array(1...7),
        "H": Array(1...10) + Array(12...15) + Array(17...22),
        "K": Array(1...6),
        "U": Array(1...16),
        "A": Array(4...16) + [18] + Array(20...26) + [30],
        "S": Array(1...27) + [29, 30],
    ]

    static func map() throws -> PromiseMap { try PromiseMap(path: "docs/behaviour-map.md") }

    @Test func everyKnownRowIsThereOnce() throws { try Self.map().checkRows(Self.rows) }

    @Test func everyRowNamesTestsThatExist() throws { try Self.map().checkTests() }

    /// A test whose title names a row must be in that row of the map.
    @Test func everyRowNamedByATestIsInTheMap() throws {
        let known = Set(try Self.map().rows.map(\.name))
        for file in try SourceFile.all(in: ["Tests/CacheEngineTests/Behaviour"]) {
            for match in file.code.matches(of: /@Test\(\s*"((?:[PHKUA]\d+(?:, |-)?)+):/) {
                for name in match.1.split(whereSeparator: { $0 == "," || $0 == "-" || $0 == " " }) {
                    #expect(known.contains(String(name)), "\(file.path) speaks of \(name)")
                }
            }
        }
    }
}
