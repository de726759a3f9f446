import Foundation
import Testing

/// What the documents show must be what compiles.
@Suite struct DocumentTests {
    static let documents = ["Sources/CacheEngine/CacheEngine.docc", "docs"]

    @Test func everySwiftBlockStandsInACompiledFile() throws {
        var compiled = try SourceFile.all(in: ["Examples"]).map { Self.lines(of: $0.text) }
        compiled.append(
            contentsOf: try SourceFile.all(in: ["Sources"]).map { Self.lines(of: $0.text) }
        )
        let haystacks = compiled.map { "\n" + $0.joined(separator: "\n") + "\n" }
        var blocks = 0
        for document in try Self.all() {
            for match in document.text.matches(of: /(?s)```swift\n(.*?)```/) {
                blocks += 1
                let wanted = Self.lines(of: String(match.1))
                let isThere = haystacks.contains { haystack in
                    haystack.contains("\n" + wanted.joined(separator: "\n") + "\n")
                }
                #expect(isThere, "\(document.path) shows what no compiled file has:\n\(match.1)")
            }
        }
        #expect(blocks > 10)
    }

    /// The lines without indentation and without blank ones.
    private static func lines(of text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty && !$0.hasPrefix("import ") }
    }

    private static func all() throws -> [SourceFile] {
        var files = try SourceFile.all(in: documents, endings: [".md"])
        let readme = SourceFile.packageRoot.appending(path: "README.md")
        if let text = try? String(contentsOf: readme, encoding: .utf8) {
            files.append(SourceFile(path: "README.md", text: text))
        }
        return files
    }
}
