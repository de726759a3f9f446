import Foundation
import Testing

/// The documents must agree with the sources.
@Suite struct DocumentTests {
    @Test func everySwiftBlockStandsInACompiledFile() throws {
        let sources = try SourceFile.all(in: ["Examples", "Sources", "Tests/ExamplesTests"])
        let parts = sources.map { Self.lines(of: $0.text, keepingImports: false) }
        let programs = sources.map { Self.lines(of: $0.text, keepingImports: true) }
        var (blocks, whole) = (0, 0)
        for file in try SourceFile.documents() + sources.map(\.documentation) {
            for match in file.text.matches(of: /(?s)```swift\n(.*?)```/) {
                blocks += 1
                // A block with imports is a whole file, and compiles as it is shown.
                let isWhole = match.1.contains(/(?m)^\s*import\b/)
                whole += isWhole ? 1 : 0
                let wanted = Self.lines(of: String(match.1), keepingImports: isWhole)
                let isThere = (isWhole ? programs : parts).contains { $0.contains(wanted) }
                #expect(isThere, "\(file.path) shows what no compiled file has:\n\(match.1)")
            }
        }
        #expect(blocks > 40)
        #expect(whole >= 5)
    }

    /// A reader can start with the first block of these articles as it stands.
    @Test(arguments: ["GettingStarted", "MigratingFromURLCache", "TestingYourCode"])
    func firstBlockOfAnArticleHasItsImports(article: String) throws {
        let text = try SourceFile.read("Sources/CacheEngine/CacheEngine.docc/\(article).md")
        let block = try #require(text.firstMatch(of: /(?s)```swift\n(.*?)```/))
        #expect(block.1.hasPrefix("import CacheEngine\n"))
    }

    /// A reason that a user meets in a metric must be explained.
    @Test func everyRefusalReasonIsExplained() throws {
        let sources = [
            ("Sources/HTTPCaching/Storing/StoreRefusal.swift", #"case \.\w+: "([a-z-]+)""#),
            ("Sources/CacheEngine/Engine/Storing/RefusalReasons.swift", #"Reason\("([a-z-]+)"\)"#),
            ("Sources/CacheEngine/Core/StoreOutcome.swift", #"case \w+ = "([a-z-]+)""#),
        ]
        let article = try SourceFile.documents().first { $0.path.hasSuffix("/WhatIsStored.md") }
        let text = try #require(article).text
        for (path, pattern) in sources {
            let file = try SourceFile.all(in: ["Sources"]).first { $0.path == path }
            let reasons = try Regex(pattern)
            let matches = try #require(file).code.matches(of: reasons)
            #expect(matches.count > 2, "\(path)")
            for match in matches {
                let reason = String(match.output[1].substring ?? "")
                #expect(text.contains("`\(reason)`"), "WhatIsStored.md lacks \(reason)")
            }
        }
    }

    @Test func everyLinkIsAlive() throws {
        for document in try SourceFile.documents() {
            for target in document.linkTargets {
                let place = SourceFile.packageRoot.appending(path: target)
                #expect(
                    FileManager.default.fileExists(atPath: place.path()),
                    "\(document.path) links to \(target)"
                )
            }
        }
    }

    @Test func everySourceThatIsNamedExists() throws {
        let files = try SourceFile.all(in: ["Adapters", "Examples", "Fuzz", "Sources", "Tests"])
        let names = Set(files.map { $0.path.split(separator: "/").last.map(String.init) ?? "" })
        for document in try SourceFile.documents() {
            for match in document.text.matches(of: /`(?:[\w\/-]+\/)?([\w+-]+\.swift)`/) {
                #expect(names.contains(String(match.1)), "\(document.path) names \(match.1)")
            }
        }
    }

    /// A document names declarations in parentheses after a link to their file.
    @Test func declarationsBesideALinkStandInTheLinkedFile() throws {
        var count = 0
        for document in try SourceFile.documents() {
            for match in document.text.matches(
                of: /\]\(([\w\/.+-]+\.swift)\) \(((?:`[^`]+`(?:, | and )?)+)/
            ) {
                let folder = URL(filePath: "/" + document.path).deletingLastPathComponent()
                let path = folder.appending(path: String(match.1)).standardized.path().dropFirst()
                let text = try SourceFile.read(String(path))
                for name in match.2.matches(of: /`(?:\w+\.)?(\w+)`/) {
                    count += 1
                    #expect(
                        try Self.declares(name.1, in: text),
                        "\(document.path) names \(name.1) in \(path)"
                    )
                }
            }
        }
        #expect(count > 60)
    }

    @Test(arguments: [
        ("    private mutating func purge(_ tag: String) {", true),
        ("    var purge = 0", true), ("    case clear, purge", true), ("    deinit {", false),
        ("func purgeAll() {}", false), ("push(.purge(record))", false), ("/// The purge.", false),
        ("let done = true  // func purge", false),
    ])
    func declarationIsFound(text: String, isDeclared: Bool) throws {
        #expect(try Self.declares("purge", in: text) == isDeclared)
    }

    /// Whether `text` declares `name`, or uses it if it is a constant of C.
    private static func declares(_ name: Substring, in text: String) throws -> Bool {
        if name == "deinit" || name == name.uppercased() { return text.contains(name) }
        let keyword = "func|var|let|case|struct|class|enum|actor|protocol|typealias"
        let line = #"(?m)^[^\n\/]*\b(?:\#(keyword))\s[^\n\/=]*\b\#(name)\b"#
        return text.contains(try Regex(line))
    }

    /// A user finds the reasons that statistics and events name.
    @Test func everyEscapeIsExplained() throws {
        let source = try SourceFile.read("Sources/CacheEngine/Flight/FlightAudience.swift")
        let page = try SourceFile.read("Sources/CacheEngine/CacheEngine.docc/Collapse.md")
        let body = try #require(source.firstMatch(of: /enum FlightEscape[^{]*\{([^}]*)\}/)).1
        let names = body.matches(of: /(?m)^ *case (\w+)$/).map { String($0.1) }
        // A request that may not share leaves no event and no count.
        for name in names where name != "mayNotShare" {
            #expect(page.contains("\n| `\(name)` | "), "Collapse.md lacks \(name)")
        }
        #expect(names.count == 7)
    }

    /// A decision must state the conditions that would reopen it.
    @Test func everyDecisionSaysWhatWouldReopenIt() throws {
        for page in try SourceFile.all(in: ["docs/decisions"], endings: [".md"]) {
            let number = page.path.split(separator: "/").last?.prefix(4) ?? ""
            #expect(page.text.hasPrefix("# \(number): "), "\(page.path) does not begin with it")
            for part in ["**Choice.**", "**What would reopen it.**"] {
                #expect(page.text.contains(part), "\(page.path) lacks its \(part)")
            }
        }
    }

    /// The last column of the glossary holds the names of its words in the code.
    @Test func everyNameInTheGlossaryIsInTheSources() throws {
        let place = SourceFile.packageRoot.appending(path: "docs/glossary.md")
        let glossary = try String(contentsOf: place, encoding: .utf8)
        let sources = try SourceFile.all(in: ["Sources"])
        let words = Set(
            sources.flatMap { $0.code.matches(of: /\w+/).map { String($0.output) } }
                + sources.flatMap { $0.path.matches(of: /\w+/).map { String($0.output) } }
        )
        var count = 0
        for line in glossary.split(separator: "\n") where line.hasPrefix("| ") {
            guard let column = line.split(separator: "|").last else { continue }
            for name in column.matches(of: /`([^`]+)`/) {
                for word in name.1.matches(of: /[A-Za-z]\w+/) {
                    count += 1
                    #expect(words.contains(String(word.output)), "The glossary names \(name.1)")
                }
            }
        }
        #expect(count > 60)
    }

    /// From the README, at most three clicks lead to the rules about storing.
    @Test func theReadmeLeadsToWhatDecidesAboutStoring() throws {
        let documents = Dictionary(
            try SourceFile.documents().map { ($0.path, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        let decision = "Sources/HTTPCaching/Storing/StoreDecision.swift"
        let place = SourceFile.packageRoot.appending(path: decision)
        #expect(try String(contentsOf: place, encoding: .utf8).contains("enum StoreDecision"))

        var reached: Set<String> = ["README.md"]
        var clicks = 0
        while !reached.contains(decision), clicks < 3 {
            clicks += 1
            for path in reached { reached.formUnion(documents[path]?.linkTargets ?? []) }
        }
        #expect(reached.contains(decision), "No way of three clicks leads to \(decision)")
    }

    /// The non-blank lines without indentation, with a line feed at both ends.
    private static func lines(of text: String, keepingImports: Bool) -> String {
        let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty && (keepingImports || !$0.hasPrefix("import ")) }
        return "\n" + lines.joined(separator: "\n") + "\n"
    }
}

extension SourceFile {
    /// The documentation comments, as a document.
    fileprivate var documentation: SourceFile {
        let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { $0.hasPrefix("///") }.map { $0.dropFirst(3) }
        return SourceFile(
            path: path,
            text: lines.joined(separator: "\n").replacing("\n ", with: "\n")
        )
    }

    /// The links of the document inside the package, as paths below its root.
    fileprivate var linkTargets: [String] {
        let folder = URL(filePath: "/" + path).deletingLastPathComponent()
        return text.matches(of: /\]\(([^)#\s]+)[^)]*\)/).compactMap { match in
            let target = String(match.1)
            if target.contains("://") || target.hasPrefix("mailto:") { return nil }
            return String(folder.appending(path: target).standardized.path().dropFirst())
        }
    }
}
