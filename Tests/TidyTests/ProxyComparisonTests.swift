import Foundation
import Testing

/// `perf/compare proxy` gives no figure to a server with wrong responses.
@Suite struct ProxyComparisonTests {
    @Test func theRulesOfTheComparisonHold() async throws {
        let outcome = try await ChildProcess.run(["python3", "perf/peers/proxy/rules_test.py"])
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("OK"))
    }

    /// The help names every row, because it is the only list of them.
    @Test func theHelpNamesEveryRow() async throws {
        let help = try await ChildProcess.run(["perf/compare", "--help"]).output
        let rows = SourceFile.packageRoot.appending(path: "perf/peers/proxy/rows.py")
        let names = try String(contentsOf: rows, encoding: .utf8)
            .matches(of: /Row\("([A-Za-z0-9-]+)"/).map { String($0.1) }
        #expect(names.count > 10)
        for name in names { #expect(help.contains(name), "\(name)") }
    }

    @Test func anUnknownRowOrFlagIsRefused() async throws {
        for line in [
            "proxy --rows", "memory --rows miss", "proxy --what", "proxy --base /none",
            "proxy --json /nonexistent/x", "proxy --rounds 0", "proxy --seconds 0",
            "proxy --directory .",
        ] {
            let arguments = line.split(separator: " ").map(String.init)
            let outcome = try await ChildProcess.run(["perf/compare"] + arguments)
            #expect(outcome.status == 2, "\(arguments): \(outcome.output)")
        }
    }
}
