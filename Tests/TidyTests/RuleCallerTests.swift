import Foundation
import Testing

/// Every type and member that `docs/rfc-map.md` names as the home of a clause is in use.
@Suite struct RuleCallerTests {
    @Test func everySymbolOfTheMapHasACaller() throws {
        let place = SourceFile.packageRoot.appending(path: "docs/rfc-map.md")
        let map = try String(contentsOf: place, encoding: .utf8)
        let sources = try SourceFile.all(in: ["Sources"])
        var symbols: Set<String> = []
        for row in map.split(separator: "\n") where row.hasPrefix("| ") {
            let cells = row.split(separator: "|")
            guard cells.count > 2 else { continue }
            for name in cells[1].matches(of: /`([A-Z][\w.]+)/) { symbols.insert(String(name.1)) }
        }
        let uncalled = symbols.filter { symbol in
            let isAmbiguous = sources.filter { $0.declares(symbol) }.count > 1
            return !sources.contains { $0.uses(symbol, isAmbiguous: isAmbiguous) }
        }
        #expect(uncalled == [])
        #expect(symbols.count > 30)
    }

    @Test func memberOfAnotherTypeIsNoCaller() {
        let file = SourceFile(path: "a.swift", text: "let isWhole = Other.isWhole || one.isWhole")
        #expect(file.declares("Kind.isWhole") && !file.declares("Kind.isPart"))
        #expect(!file.uses("Kind.isWhole", isAmbiguous: true))
        #expect(file.uses("Other.isWhole", isAmbiguous: true))
        #expect(file.uses("Kind.isWhole", isAmbiguous: false))
    }
}

extension SourceFile {
    /// Whether the file declares a member of that name, in any type.
    fileprivate func declares(_ symbol: String) -> Bool {
        let parts = symbol.split(separator: ".")
        guard parts.count > 1, let name = parts.last, text.contains(name) else { return false }
        return code.matches(of: /\b(?:func|var|let|case) +(\w+)/).contains { $0.1 == name }
    }

    /// Whether the file uses the type, or the member of a type, that another line declares.
    ///
    /// If several files declare a member of that name, only its use behind the type counts.
    fileprivate func uses(_ symbol: String, isAmbiguous: Bool) -> Bool {
        let parts = symbol.split(separator: ".")
        guard let name = parts.last, text.contains(name) else { return false }
        let declaration = /\b(?:struct|class|actor|enum|protocol|extension|func|var|let|case)\s+$/
        let code = code
        return code.matches(of: /\w+/).contains { match in
            guard match.output == name else { return false }
            let before = code[..<match.range.lowerBound].suffix(40)
            guard before.firstMatch(of: declaration) == nil else { return false }
            if parts.count > 1, isAmbiguous { return before.hasSuffix("\(parts[0]).") }
            // A member is used behind a dot, or by its own type without one.
            return parts.count == 1 || before.hasSuffix(".")
                || code.contains("struct \(parts[0])") || code.contains("extension \(parts[0])")
        }
    }
}
