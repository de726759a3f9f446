import Foundation
import Testing

/// `Tests/mutants.table` and the sources must list the same deliberate bugs.
@Suite struct MutantTests {
    /// A row of the table: `name  Target.Suite/test  [by-crash | by-hang]`.
    struct Row {
        let name: String
        let test: String
        let ending: String?
    }

    static func rows() throws -> [Row] {
        let place = SourceFile.packageRoot.appending(path: "Tests/mutants.table")
        let text = try String(contentsOf: place, encoding: .utf8)
        return try text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
            let words = line.split(separator: " ").map(String.init)
            try #require((2...3).contains(words.count), "A row of two or three words: \(line)")
            return Row(name: words[0], test: words[1], ending: words.count > 2 ? words[2] : nil)
        }
    }

    /// The cases of every `Mutant`, each with its target.
    static func cases() throws -> [(name: String, target: Substring)] {
        try SourceFile.all(in: ["Sources"], endings: ["/Mutant.swift"]).flatMap { file in
            file.code.matches(of: /(?m)^    case (\w+)$/).map { match in
                (String(match.1), file.path.split(separator: "/")[1])
            }
        }
    }

    @Test func everyMutantHasOneRowAndNoRowIsWithoutAMutant() throws {
        let names = try Self.cases().map(\.name).sorted()
        #expect(Set(names).count == names.count, "A name stands for one mutant")
        #expect(names == (try Self.rows().map(\.name).sorted()))
        #expect(names.count >= 40)
    }

    @Test func everyMutantHasOnePointInItsOwnTarget() throws {
        var points: [String: [String]] = [:]
        for file in try SourceFile.all(in: ["Sources"]) where file.text.contains("Mutant.") {
            for point in file.code.matches(of: /\bMutant\.(\w+)\.isOn\b/) {
                points[String(point.1), default: []].append(file.path)
            }
        }
        for (name, target) in try Self.cases() {
            let files = points[name] ?? []
            #expect(files.count == 1, "\(name) has points in \(files)")
            #expect(files.allSatisfy { $0.hasPrefix("Sources/\(target)/") }, "\(name) in \(files)")
        }
    }

    /// The check on GitHub clones one commit, so every count of commits is 1 there.
    @Test func partIsChosenWithoutHistory() throws {
        let script = try SourceFile.read("Tests/part")
        #expect(script.contains("rev-parse HEAD"))
        #expect(!script.contains("rev-list") && !script.contains("--count"))
    }

    @Test func everyRowNamesATestThatExists() throws {
        let sources = try SourceFile.all(in: ["Tests"]).map { file in
            let names = file.text.matches(of: /(?:struct|extension|func) \w+/).map(\.output)
            return (path: file.path, declares: Set(names))
        }
        for row in try Self.rows() {
            let match = try #require(
                row.test.wholeMatch(of: /(\w+)\.(\w+)\/(\w+)/),
                "\(row.name) names no test as Target.Suite/test: \(row.test)"
            )
            let suites: Set<Substring> = ["struct \(match.2)", "extension \(match.2)"]
            let isThere = sources.contains { file in
                file.path.hasPrefix("Tests/\(match.1)/") && !file.declares.isDisjoint(with: suites)
                    && file.declares.contains("func \(match.3)")
            }
            #expect(isThere, "\(row.name) names \(row.test), which does not exist")
            #expect([nil, "by-crash", "by-hang"].contains(row.ending), "\(row.name): \(row.test)")
        }
    }
}
