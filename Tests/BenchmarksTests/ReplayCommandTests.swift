import Benchmarks
import Testing

@testable import bench_cli

@Suite struct ReplayCommandTests {
    /// The rows that a replay of `text` writes, or `nil` if the command refuses it.
    private static func replay(_ text: String, _ flags: String...) async throws -> [Measurement]? {
        let scratch = try ScratchDirectory(in: WorkloadPlan.defaultScratchDirectory)
        let (trace, file) = (scratch.path + "/t", scratch.path + "/t.json")
        try TextFile.write(text, to: trace)
        let words = ["replay", "--trace", trace, "--json", file] + flags
        guard await BenchCommandLine.run(words) == .success else { return nil }
        return try RunResult.read(file).measurements
    }

    private static func value(_ quantity: String, _ rows: [Measurement]?) -> Double? {
        rows?.first { $0.quantity == quantity }?.value
    }

    @Test func skippedLinesAreARowOfTheResult() async throws {
        let log = #"h - - [t] "GET /a HTTP/1.1" 200 500"# + "\n"
        let odd = #"h - - [t] "-" 408 0"# + "\n"
        let rows = try await Self.replay(log + odd + log + odd, "--memory", "1M")
        #expect(Self.value("skipped_lines", rows) == 2)
        #expect(Self.value("requests", rows) == 2)
        let others = try await Self.replay(log + log, "--memory", "1M")
        #expect(others?.contains { $0.quantity == "skipped_lines" } == false)
    }
}
