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

    /// Twenty objects in turn; half of them fit.
    private static let identities = (0..<2_000).map { "object-\($0 % 20)\n" }.joined()

    @Test func traceWithoutSizesCountsObjects() async throws {
        let rows = try await Self.replay(Self.identities, "--memory-fraction", "0.5")
        let ratio = try #require(Self.value("request_hit_ratio", rows))
        #expect(ratio > 0.3)
        let asked = try await Self.replay(
            Self.identities,
            "--memory-fraction",
            "0.5",
            "--unit-size"
        )
        #expect(Self.value("request_hit_ratio", asked) == ratio)
        // A disk needs sizes.
        #expect(try await Self.replay(Self.identities, "--disk", "1M") == nil)
    }

    @Test func headTellsWhatTheReplayMakesOfTheTrace() {
        var trace = RequestTrace()
        trace.append(object: 1, sizeBytes: 1)
        #expect(
            ReplayCommand.head("t", trace) == """
                t: 1 requests of 1 objects
                The trace has no sizes: every object counts 64 KiB, as with --unit-size

                """
        )
        trace.append(object: 2, sizeBytes: 1023)
        #expect(ReplayCommand.head("t", trace) == "t: 2 requests of 2 objects, 1 KiB in all\n")
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
