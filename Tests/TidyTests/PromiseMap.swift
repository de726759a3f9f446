import Foundation
import Testing

/// A table in `docs` whose rows name promises and the tests that prove them.
struct PromiseMap {
    struct Row {
        let name: String
        let promise: String
        let tests: [String]
        /// How the row's tests failed before the repair; `nil` if the table lacks that column.
        let failure: String?
    }

    let rows: [Row]

    init(path: String) throws {
        let place = SourceFile.packageRoot.appending(path: path)
        let text = try String(contentsOf: place, encoding: .utf8)
        rows = text.split(separator: "\n").compactMap { line in
            guard
                let match = line.wholeMatch(
                    of: /\| ([A-Z]\d+[a-z]?) \| ([^|]+) \| ([^|]+) \|(?: ([^|]+) \|)?/
                )
            else { return nil }
            return Row(
                name: String(match.1),
                promise: String(match.2),
                tests: match.3.matches(of: /`(\w+)`/).map { String($0.1) },
                failure: match.4.map(String.init)
            )
        }
    }

    /// Checks that every expected row is present exactly once.
    func checkRows(_ expected: [Character: [Int]]) {
        let names = rows.map(\.name)
        for (family, numbers) in expected {
            for number in numbers {
                let count = names.filter { $0 == "\(family)\(number)" }.count
                #expect(count == 1, "\(family)\(number) is there \(count) times")
            }
        }
    }

    /// Checks that every row states a promise and names only existing tests.
    func checkTests() throws {
        let sources = try SourceFile.all(in: ["Tests"]).map(\.code).joined(separator: "\n")
        let tests = Set(sources.matches(of: /func (\w+)\(/).map { String($0.1) })
        for row in rows {
            #expect(!row.tests.isEmpty, "\(row.name) names no test")
            #expect(row.promise.count > 10, "\(row.name) promises nothing")
            for test in row.tests where !tests.contains(test) {
                Issue.record("\(row.name) names \(test), which does not exist")
            }
        }
    }
}
