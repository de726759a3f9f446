import Benchmarks
import CacheEngine
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

    @Test func requestsWithoutALengthAreTold() async throws {
        let log = #"h - - [t] "GET /a HTTP/1.1" 200 500"# + "\n"
        let unsized = #"h - - [t] "GET /b HTTP/1.1" 200 -"# + "\n"
        let rows = try await Self.replay(log + unsized + log + unsized, "--memory", "1M")
        #expect(Self.value("requests_without_length", rows) == 2)
        #expect(Self.value("requests", rows) == 4)
        let others = try await Self.replay(log + log, "--memory", "1M")
        #expect(others?.contains { $0.quantity == "requests_without_length" } == false)
    }

    @Test func resultNamesTheDefaultPolicy() async throws {
        let rows = try await Self.replay("1,2,3\n")
        #expect(rows?.first?.parameter("policy") == "balanced")
        #expect(ReplayCommand.help.contains("(default balanced)"))
    }

    /// `compare` takes rows with the same parameters for the same question.
    @Test func rowsNameTheSizesAndTheDisk() async throws {
        let text = "1,2,3\n2,3,4\n"
        let plain = try await Self.replay(text, "--memory", "1M")
        #expect(plain?.first?.parameters.map(\.name) == ["memory", "policy", "trace"])
        let unit = try await Self.replay(text, "--memory", "1M", "--unit-size")
        #expect(unit?.first?.parameter("sizes") == "unit")
        var disks: [RunResult] = []
        for size in ["16M", "32M"] {
            let rows = try await Self.replay(text, "--memory", "1M", "--disk", size)
            disks.append(RunResult(measurements: try #require(rows)))
        }
        let comparison = Comparison(base: disks[0], new: disks[1])
        #expect(comparison.rows.allSatisfy { $0.verdict == .removed || $0.verdict == .added })
    }

    @Test func diskThatIsTooSmallIsRefused() async throws {
        #expect(try await Self.replay("1,2,3\n", "--memory", "1M", "--disk", "100K") == nil)
        // Before the trace is read, as for every other flag.
        let words = ["replay", "--trace", "/nonexistent", "--disk", "100K"]
        #expect(await BenchCommandLine.run(words) == .usage)
        let error = UsageError("--disk: `100K` is too small for segments; give more")
        await #expect(throws: error) {
            try await ReplayCommand.run(
                Arguments(Array(words.dropFirst()), flags: ReplayCommand.flags)
            )
        }
    }

    @Test func usageNamesEveryFlag() {
        for flag in ReplayCommand.flags { #expect(ReplayCommand.synopsis.contains(flag.name)) }
    }

    @Test func progressAdvancesWithinAReplayAndFromOneToTheNext() {
        var text = ""
        let line = Terminal.ProgressLine(isTerminal: false) { text += $0 }
        var progress = ReplayProgress(replayCount: 4, line: line)
        for _ in 0..<2 {
            for policy in ["a", "b"] {
                progress.begin(policy)
                for share in [0.1, 0.5, 0.9] { progress.show(share) }
            }
        }
        let steps = [
            ("a", [0, 10, 20]), ("b", [20, 30, 40]), ("a", [50, 60, 70]), ("b", [70, 80, 90]),
        ]
        let lines = steps.flatMap { policy, tens in
            tens.map { "replaying with \(policy) \($0) %\n" }
        }
        #expect(text == lines.joined())
    }

    @Test func replayTellsItsProgress() async throws {
        var trace = RequestTrace()
        for object in UInt64(0)..<4_096 { trace.append(object: object, sizeBytes: 10) }
        var shares: [Double] = []
        _ = TraceReplay(trace).run(.init(capacity: .bytes(1 << 20))) { shares.append($0) }
        #expect(shares == [0.25, 0.5, 0.75, 1])
        shares = []
        let scratch = try ScratchDirectory(in: WorkloadPlan.defaultScratchDirectory)
        let tiered = TieredReplay(
            trace,
            memory: .init(capacityBytes: 1 << 20),
            directory: scratch.path + "/tier",
            diskBytes: 16 << 20
        )
        _ = try await tiered.run { shares.append($0) }
        #expect(shares == [0.25, 0.5, 0.75, 1])
    }
}
