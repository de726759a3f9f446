import Testing

/// The programs and the changelog name one version.
@Suite struct VersionTests {
    @Test(arguments: ["bench-cli", "cache-proxy"])
    func programPrintsTheNewestVersionOfTheChangelog(program: String) async throws {
        let changelog = try SourceFile.read("CHANGELOG.md")
        let heading = try #require(changelog.firstMatch(of: /(?m)^## (\d+\.\d+\.\d+)$/))
        let outcome = try await ChildProcess.run([ChildProcess.product(program), "--version"])
        #expect(outcome.status == 0)
        let first = outcome.output.split(whereSeparator: \.isNewline).first ?? ""
        let words = first.split { $0 == " " || $0 == "," }.prefix(2)
        #expect(words == [Substring(program), heading.1], "\(first)")
    }
}
