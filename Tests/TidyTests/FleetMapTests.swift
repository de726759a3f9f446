import Foundation
import Testing

/// Checks `docs/fleet-map.md`, which names the tests of each statement about a fleet.
@Suite struct FleetMapTests {
    static func map() throws -> PromiseMap { try PromiseMap(path: "docs/fleet-map.md") }

    @Test func everyStatementIsThereOnce() throws {
        try Self.map().checkRows(["R": Array(1...25)])
    }

    /// A row names its tests, or says plainly that there are none.
    @Test func everyRowNamesTestsThatExistOrSaysThatThereAreNone() throws {
        let sources = try SourceFile.all(in: ["Tests"]).map(\.code).joined(separator: "\n")
        let known = Set(sources.matches(of: /func (\w+)\(/).map { String($0.1) })
        let place = SourceFile.packageRoot.appending(path: "docs/fleet-map.md")
        let text = try String(contentsOf: place, encoding: .utf8)
        var tested = 0
        for line in text.split(separator: "\n") where line.hasPrefix("| R") {
            let cells = line.split(separator: "|")
            try #require(cells.count == 3, "\(line)")
            let names = cells[2].matches(of: /`([a-z]\w{9,})`/).map { String($0.1) }
            tested += names.isEmpty ? 0 : 1
            for name in names { #expect(known.contains(name), "\(name) does not exist") }
            let isPlain = cells[2].contains("not built") || cells[2].contains("no test")
            #expect(!names.isEmpty || isPlain, "\(line)")
        }
        #expect(tested >= 10)
    }
}
