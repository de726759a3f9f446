import Foundation
import Testing

/// Every test that the map of clauses names must exist.
@Suite struct RFCMapTests {
    private static let tests = URL(filePath: #filePath).deletingLastPathComponent()

    private static func sources() throws -> String {
        let files = FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil)
        var text = ""
        while let file = files?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            text += try String(contentsOf: file, encoding: .utf8)
        }
        return text
    }

    @Test func everyTestInTheMapExists() throws {
        let map = try String(
            contentsOf: Self.tests.appending(path: "../../docs/rfc-map.md"),
            encoding: .utf8
        )
        // A suite's text reaches from its declaration to the next one.
        var suites: [String: Substring] = [:]
        for part in try Self.sources().split(separator: "\nstruct ") {
            suites[String(part.prefix { $0.isLetter || $0.isNumber })] = part
        }
        var count = 0
        for match in map.matches(of: /`(\w+Tests)\.(\w+)`/) {
            let isFound = suites[String(match.1)]?.contains("func \(match.2)(") ?? false
            #expect(isFound, "\(match.1).\(match.2)")
            count += 1
        }
        #expect(count > 100)
    }
}
