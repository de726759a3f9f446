import Foundation
import Testing

/// `docs/concurrency.md` lists the actors and locks that the sources declare, and no others.
@Suite struct ConcurrencyTableTests {
    /// The targets that ship.
    ///
    /// Locks of tests, tools and benchmarks are their own business.
    private static let folders = [
        "Sources/CacheEngine", "Sources/CacheEngineFoundation", "Sources/CacheEngineRedis",
        "Sources/CacheProxy",
        "Sources/CurlOrigin", "Sources/HTTPCaching", "Sources/RESP", "Sources/RedisClient",
    ]

    /// The names in one column of the table below `heading`, from its first backticks on.
    private static func names(below heading: String, column: Int) throws -> Set<String> {
        let place = SourceFile.packageRoot.appending(path: "docs/concurrency.md")
        let text = try String(contentsOf: place, encoding: .utf8)
        let start = try #require(text.range(of: "\n## \(heading)\n"), "no section \(heading)")
        let section = text[start.upperBound...]
        let end = section.range(of: "\n## ")?.lowerBound ?? section.endIndex
        var names: Set<String> = []
        for row in section[..<end].split(separator: "\n") where row.hasPrefix("| ") {
            let cells = row.split(separator: "|")
            guard cells.count > column else { continue }
            for name in cells[column].matches(of: /`([^`]+)`/) { names.insert(String(name.1)) }
        }
        return names
    }

    @Test func everyActorIsInTheTable() throws {
        let declared = try SourceFile.all(in: Self.folders).flatMap { file in
            file.code.matches(of: /(?m)^\s*(?:\w+ )*actor (\w+)/).map { String($0.1) }
        }
        let listed = try Self.names(below: "Actors", column: 0)
        #expect(Set(declared) == listed)
        #expect(declared.count >= 3)
    }

    @Test func everyLockIsInTheTable() throws {
        let declared = Set(try SourceFile.all(in: Self.folders).flatMap(\.locks))
        let listed = try Self.names(below: "Locks", column: 1)
        #expect(declared.subtracting(listed).isEmpty, "missing in docs/concurrency.md")
        #expect(listed.subtracting(declared).isEmpty, "not in the sources")
        #expect(declared.count > 20)
    }

    /// Code under a lock neither waits nor wakes: the table promises it, and a reader of the sources
    /// relies on it.
    ///
    /// Only what stands between the braces of a `withLock` is seen, not what it calls.
    @Test func nothingIsAwaitedOrWokenUnderALock() throws {
        let forbidden = [
            "await ", ".resume(", "perform(", "requestWork(", "Task {", "Task(", "core.wake(",
            "core.submit(",
        ]
        for file in try SourceFile.all(in: ["Sources/CacheEngine"]) {
            // A task removes itself from the supervisor's table, so it must not end before it is in.
            if file.path.hasSuffix("/Supervisor.swift") { continue }
            for block in file.lockedBlocks {
                for word in forbidden where block.contains(word) {
                    Issue.record("\(file.path) says \(word) under a lock:\n\(block)")
                }
            }
        }
    }
}

extension SourceFile {
    /// The locks that the file declares, each as `Type.name`.
    var locks: [String] {
        let code = code
        let words = ["Mutex", "ce_gate_make"]
        guard words.contains(where: { code.range(of: $0, options: .literal) != nil }) else {
            return []
        }
        let lines = code.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.enumerated().compactMap { number, line in
            let lock = /(?:let|var) (\w+)(?:: Mutex<| = Mutex[<(]| = ce_gate_make\()/
            guard words.contains(where: { line.range(of: $0, options: .literal) != nil }),
                let name = line.firstMatch(of: lock)?.1
            else { return nil }
            let owner = Self.owner(ofLine: number, in: lines)
            return owner.map { "\($0).\(name)" } ?? String(name)
        }
    }

    /// The bodies of all closures handed to `withLock`.
    var lockedBlocks: [String] {
        let code = code
        return code.matches(of: /withLock(?:IfAvailable)?(?:\(\{| \{)/).map { match in
            var depth = 1
            var end = match.range.upperBound
            while end < code.endIndex, depth > 0 {
                if code[end] == "{" { depth += 1 }
                if code[end] == "}" { depth -= 1 }
                end = code.index(after: end)
            }
            return String(code[match.range.upperBound..<end])
        }
    }

    private static let typeWords: Set<Substring> = [
        "struct", "class", "actor", "enum", "extension",
    ]

    /// The innermost type whose declaration encloses the line.
    private static func owner(ofLine number: Int, in lines: [Substring]) -> Substring? {
        var indent = lines[number].prefix { $0 == " " }.count
        for line in lines[..<number].reversed() {
            let own = line.prefix { $0 == " " }.count
            guard own < indent, own < line.utf8.count else { continue }
            let words = line.split(separator: " ", maxSplits: 8)
            let type = words.dropLast().lastIndex { Self.typeWords.contains($0) }
            if let type { return words[type + 1].prefix { $0.isLetter || $0 == "." } }
            // A line of the same declaration, such as the parameters of a function.
            indent = own
        }
        return nil
    }
}
