import Foundation
import Testing

/// `docs/errors.md` has every error text of the sources and scripts, and no other.
@Suite struct ErrorTextTests {
    @Test func everyErrorTextIsOnThePage() throws {
        let rows = try Self.page().flatMap(\.texts)
        let texts = try Self.sourceTexts() + Self.scriptTexts()
        for text in texts where !rows.contains(where: text.isPart) {
            Issue.record("docs/errors.md lacks: \(text.text) (\(text.path))")
        }
        #expect(texts.count > 200)
    }

    /// The proxy's own part has other tests: its texts are put together from several literals.
    @Test func everyTextOfThePageIsInTheSources() throws {
        // A text such as `… to …` is part of many rows.
        let texts = try (Self.sourceTexts() + Self.scriptTexts())
            .filter { $0.text.count(where: \.isLetter) >= 4 }
        let others = try Self.page().drop { $0.heading != "The library" }
        let rows = others.flatMap(\.texts)
        for row in rows where !texts.contains(where: { $0.isPart(of: row) }) {
            Issue.record("No source has the text of docs/errors.md: \(row)")
        }
        #expect(rows.count > 150)
    }

    @Test(arguments: [
        (#"throw UsageError("one \(b("x")) two " + "three")"#, ["one … two three"]),
        (#"throw Self.invalid("one: `\(x)`")"#, ["one: `…`"]),
        (#"CacheError(.a, detail: first ? "one" : "two")"#, ["one", "two"]),
        (#"fault = "one \(x)""#, ["one …"]),
        (#"return CacheError(.a, detail: text)"#, []),
        (#"let label = "one""#, []),
    ])
    func literalsOfErrorsAreFound(code: String, texts: [String]) {
        let file = SourceFile(path: "a.swift", text: code + "\n")
        #expect(ErrorText.inCalls(of: file).map(\.text) == texts)
    }

    @Test func formatsOfCAreValues() {
        let code = #"fprintf(stderr, "a: %.*s of %llu\n", 3, x);"# + "\n"
        let texts = ErrorText.inCalls(of: SourceFile(path: "a.c", text: code)).map(\.text)
        #expect(texts == ["a: … of …"])
    }

    @Test(arguments: [
        (#"echo "perf/a: '$1' is not a ${b}; give c" >&2"#, ["'…' is not a …; give c"]),
        (#"[ -e x ] || fail "there is no x""#, ["there is no x"]),
        (#"echo "Building" >&2"#, []),
        (#"echo "one: two""#, []),
    ])
    func linesOfScriptsAreFound(code: String, texts: [String]) {
        let file = SourceFile(path: "perf/a", text: code + "\n")
        #expect(ErrorText.inShell(file).map(\.text) == texts)
    }

    @Test(arguments: [
        ("one … two", "one … two", true), ("one … two", "x one … y two", true),
        ("one … two", "two … one", false), ("one", "…", false),
    ])
    func constantPartsAreCompared(text: String, row: String, isPart: Bool) throws {
        let file = SourceFile(path: "a.swift", text: "UsageError(\"\(text)\")")
        let text = try #require(ErrorText.inCalls(of: file).first)
        #expect(text.isPart(of: row) == isPart)
    }

    // MARK: The page

    /// A part of the page with the code spans of its table's column `text`.
    private struct Section {
        let heading: String
        var texts: [String] = []
    }

    private static func page() throws -> [Section] {
        let path = SourceFile.packageRoot.appending(path: "docs/errors.md")
        var sections: [Section] = []
        var column: Int?
        for line in try String(contentsOf: path, encoding: .utf8).split(separator: "\n") {
            if line.hasPrefix("#") {
                sections.append(Section(heading: String(line.drop { "# ".contains($0) })))
            }
            guard line.hasPrefix("| ") else {
                if !line.hasPrefix("|") { column = nil }
                continue
            }
            let cells = line.dropFirst(2).split(separator: " | ")
            if let column, column < cells.count {
                sections[sections.count - 1].texts += spans(of: cells[column])
            } else {
                column = cells.firstIndex(of: "text")
            }
        }
        return sections
    }

    private static func spans(of cell: Substring) -> [String] {
        cell.matches(of: /(`+) ?(.+?) ?\1(?!`)/).map { String($0.2) }
    }

    // MARK: The sources

    private static func sourceTexts() throws -> [ErrorText] {
        let targets = [
            "CacheEngine", "HTTPCaching", "CurlOrigin", "CacheEngineFoundation", "CacheProxy",
            "Benchmarks", "bench-cli", "RESP", "RedisClient", "CacheEngineRedis",
        ]
        return try SourceFile.all(in: targets.map { "Sources/\($0)" })
            .flatMap(ErrorText.inCalls)
    }

    private static func scriptTexts() -> [ErrorText] {
        ["perf", "Tests", "docs", "Fuzz", "Examples", ".ci"].flatMap { folder -> [ErrorText] in
            let root = SourceFile.packageRoot.appending(path: folder)
            let paths = FileManager.default.enumerator(atPath: root.path())?.allObjects ?? []
            return paths.compactMap { $0 as? String }
                .filter { !$0.hasPrefix("out/") && !$0.hasSuffix(".swift") }
                .flatMap { scriptTexts(of: "\(folder)/\($0)") }
        }
    }

    private static func scriptTexts(of path: String) -> [ErrorText] {
        let place = SourceFile.packageRoot.appending(path: path)
        guard let text = try? String(contentsOf: place, encoding: .utf8) else { return [] }
        let file = SourceFile(path: path, text: text)
        if text.hasPrefix("#!/usr/bin/env bash") || text.hasPrefix("#!/bin/sh") {
            return ErrorText.inShell(file)
        }
        let isOther = text.hasPrefix("#!/usr/bin/env python3")
        let isC = path.hasSuffix(".c") || path.hasSuffix(".cpp")
        return isOther || isC ? ErrorText.inCalls(of: file) : []
    }
}

extension ErrorText {
    /// Whether the row has the constant parts of this text in their order.
    fileprivate func isPart(of row: String) -> Bool {
        var rest = row[...]
        for part in text.components(separatedBy: "…") where !part.isEmpty {
            guard let place = rest.range(of: part) else { return false }
            rest = rest[place.upperBound...]
        }
        return true
    }
}
