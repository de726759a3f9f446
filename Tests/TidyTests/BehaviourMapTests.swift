import Foundation
import Testing

/// `docs/behaviour-map.md` says which test holds which promise; here it is held to that.
@Suite struct BehaviourMapTests {
    /// The rows that must be there, by family; a family is complete as soon as it has one row.
    static let rows: [Character: [Int]] = [
        "P": Array(1...7),
        "H": Array(1...10) + Array(12...15) + Array(17...22),
        "K": Array(1...6),
        "U": Array(1...16),
        "A": Array(4...16) + [18] + Array(20...26) + [30],
        "S": Array(1...27) + [29, 30],
    ]

    struct Row {
        let name: String
        let promise: String
        let tests: [String]
    }

    static func rowsInTheMap() throws -> [Row] {
        let place = SourceFile.packageRoot.appending(path: "docs/behaviour-map.md")
        let text = try String(contentsOf: place, encoding: .utf8)
        return text.split(separator: "\n").compactMap { line in
            guard let match = line.wholeMatch(of: /\| ([A-Z]\d+) \| (.+) \| (.+) \|/) else {
                return nil
            }
            let tests = match.3.matches(of: /`(\w+)`/).map { String($0.1) }
            return Row(name: String(match.1), promise: String(match.2), tests: tests)
        }
    }

    @Test func everyKnownRowIsThereOnce() throws {
        let names = try Self.rowsInTheMap().map(\.name)
        for family in "PHKUA" {
            #expect(names.contains { $0.first == family }, "No row of family \(family)")
        }
        for (family, numbers) in Self.rows where names.contains(where: { $0.first == family }) {
            for number in numbers {
                let count = names.filter { $0 == "\(family)\(number)" }.count
                #expect(count == 1, "\(family)\(number) is there \(count) times")
            }
        }
    }

    @Test func everyRowNamesTestsThatExist() throws {
        let sources = try SourceFile.all(in: ["Tests"]).map(\.code).joined(separator: "\n")
        let tests = Set(sources.matches(of: /func (\w+)\(/).map { String($0.1) })
        for row in try Self.rowsInTheMap() {
            #expect(!row.tests.isEmpty, "\(row.name) names no test")
            #expect(row.promise.count > 10, "\(row.name) promises nothing")
            for test in row.tests where !tests.contains(test) {
                Issue.record("\(row.name) names \(test), which does not exist")
            }
        }
    }

    /// A test that says which row it is for belongs to that row in the map.
    @Test func everyRowNamedByATestIsInTheMap() throws {
        let known = Set(try Self.rowsInTheMap().map(\.name))
        for file in try SourceFile.all(in: ["Tests/CacheEngineTests/Behaviour"]) {
            for match in file.code.matches(of: /@Test\(\s*"((?:[PHKUA]\d+(?:, |-)?)+):/) {
                for name in match.1.split(whereSeparator: { $0 == "," || $0 == "-" || $0 == " " }) {
                    #expect(known.contains(String(name)), "\(file.path) speaks of \(name)")
                }
            }
        }
    }
}
