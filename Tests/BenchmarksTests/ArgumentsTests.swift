import Benchmarks
import Testing

@testable import bench_cli

@Suite struct ArgumentsTests {
    static let flags: [Arguments.Flag] = [
        .init("--quick", nil, ""), .init("--keys", "N", ""), .init("--memory", "BYTES", ""),
        .init("--share", "F", ""),
    ]

    @Test func flagsAndWordsMayStandInAnyOrder() throws {
        let arguments = try Arguments(
            ["a", "--keys", "7", "--quick", "b", "--memory=64M", "--", "--c"],
            flags: Self.flags
        )
        #expect(arguments.positional == ["a", "b", "--c"])
        #expect(arguments.has("--quick"))
        #expect(try arguments.count("--keys", atMost: 7) == 7)
        #expect(try arguments.bytes("--memory") == 64 << 20)
    }

    @Test(arguments: [
        ["--nope"], ["--keys"], ["--quick=yes"], ["--keys="], ["-x"],
    ])
    func aWrongFlagIsRefused(words: [String]) {
        #expect(throws: UsageError.self) { try Arguments(words, flags: Self.flags) }
    }

    @Test(arguments: [
        ("1", 1), ("4k", 4 << 10), ("4KiB", 4 << 10), ("2G", 2 << 30), ("1T", 1 << 40),
        ("100B", 100),
    ])
    func sizesAreReadWithTheirSuffix(text: String, bytes: Int) throws {
        let arguments = try Arguments(["--memory", text], flags: Self.flags)
        #expect(try arguments.bytes("--memory") == bytes)
    }

    @Test(arguments: ["0", "-1", "x", "1X", "1.5G", "9999999999T", ""])
    func invalidSizesAreRefused(text: String) {
        #expect(throws: UsageError.self) {
            _ = try Arguments(["--memory=\(text)"], flags: Self.flags).bytes("--memory")
        }
    }

    @Test(arguments: [
        (["--nope=1"], "--nope: there is no such flag; --help lists them"),
        (["--quick=yes"], "--quick: the flag takes no value; give --quick alone"),
        (["--keys"], "--keys: the value is missing; give --keys N"),
        (["--keys", "0"], "--keys: `0` is not a count; give a whole number above 0"),
        (
            ["--memory", "1X"],
            "--memory: `1X` is not a size; give a number above 0, as 4096, 64M or 2G"
        ),
        (["--share", "2"], "--share: `2` is not a share; give a number above 0, at most 1"),
    ])
    func errorNamesTheFlagAndItsValue(words: [String], text: String) {
        #expect(throws: UsageError(text)) {
            let arguments = try Arguments(words, flags: Self.flags)
            _ = try arguments.count("--keys", atMost: 100)
            _ = try arguments.bytes("--memory")
            _ = try arguments.fraction("--share")
        }
    }

    @Test(arguments: ["0", "1.5", "x", "-0.1"])
    func invalidSharesAreRefused(text: String) {
        #expect(throws: UsageError.self) {
            _ = try Arguments(["--share", text], flags: Self.flags).fraction("--share")
        }
    }
}

@Suite struct BenchCommandLineTests {
    @Test(arguments: [
        [], ["nope"], ["run", "--nope"], ["run", "no-such-workload"], ["list", "extra"],
        ["compare", "one.json"], ["compare", "/nonexistent/a.json", "/nonexistent/b.json"],
        ["report"], ["report", "a.json"], ["run", "--threads", "0"], ["profile", "memory-hit"],
        ["run", "--json", "/nonexistent/x.json"],
        ["run", "memory-hit", "--smoke", "--directory", "/nonexistent"],
        ["flame", "/nonexistent", "--output", "x"],
        ["run", "--quick", "--smoke"], ["replay"], ["replay", "--trace", "/nonexistent"],
        ["replay", "--trace", "x", "--memory", "1M", "--memory-fraction", "0.1"],
        ["replay", "--trace", "x", "--policy", "nope"], ["versus", "nope"], ["versus", "memory"],
        ["run", "memory-hit", "--threads", "1025"], ["run", "memory-hit", "--keys", "100000001"],
        ["hit-ratio"],
        ["hit-ratio", "--traces", "/nonexistent"],
    ])
    func mistakesOfTheCallerExitWithTwo(words: [String]) async {
        #expect(await BenchCommandLine.run(words) == .usage)
    }

    @Test func askingForHelpSucceedsForEveryCommand() async {
        #expect(await BenchCommandLine.run(["--help"]) == .success)
        for command in BenchCommandLine.commands {
            #expect(await BenchCommandLine.run([command.name, "--help"]) == .success)
            #expect(command.help.contains("usage: bench-cli \(command.name)"))
            for flag in command.flags { #expect(command.help.contains(flag.name)) }
        }
    }

    /// The results of an earlier run are not lost to one that fails.
    @Test func failedRunLeavesTheFileOfResults() async throws {
        let scratch = try ScratchDirectory(in: WorkloadPlan.defaultScratchDirectory)
        let old = scratch.path + "/old.json"
        try TextFile.write("{}", to: old)
        let new = scratch.path + "/new.json"
        for file in [old, new] {
            let words = ["run", "disk-hit-warm", "--directory", "/nonexistent", "--json", file]
            #expect(await BenchCommandLine.run(words) == .usage)
        }
        #expect(try TextFile.read(old) == "{}")
        #expect(scratch.files().map(\.path) == [old])
    }

    @Test func aRegressionExitsWithOneAndNoChangeWithZero() async throws {
        let scratch = try ScratchDirectory(in: WorkloadPlan.defaultScratchDirectory)
        let base = try Self.write("base.json", [("time", 100)], in: scratch)
        let slow = try Self.write("slow.json", [("time", 200)], in: scratch)
        #expect(await BenchCommandLine.run(["compare", base, base]) == .success)
        #expect(await BenchCommandLine.run(["compare", base, slow]) == .failure)
        let page = scratch.path + "/page.html"
        #expect(await BenchCommandLine.run(["report", base, "--output", page]) == .success)
        #expect(try TextFile.read(page).contains("Every figure"))
    }

    /// A run that measures less proves nothing about the rest.
    @Test func rowThatIsGoneExitsWithOneUnlessTheRunIsPartial() async throws {
        let scratch = try ScratchDirectory(in: WorkloadPlan.defaultScratchDirectory)
        let both = try Self.write("both.json", [("time", 100), ("other", 1)], in: scratch)
        let some = try Self.write("some.json", [("time", 100)], in: scratch)
        let slow = try Self.write("slow.json", [("time", 200)], in: scratch)
        let rest = try Self.write("rest.json", [("other", 1)], in: scratch)
        let none = try Self.write("none.json", [], in: scratch)
        let cases: [([String], ExitCode)] = [
            ([both, some], .failure), ([both, some, "--partial"], .success),
            ([some, both], .success), ([both, slow, "--partial"], .failure),
            ([some, rest], .usage), ([some, rest, "--partial"], .usage), ([some, none], .usage),
            ([none, none], .usage),
        ]
        for (words, code) in cases {
            #expect(await BenchCommandLine.run(["compare"] + words) == code, "\(words)")
        }
    }

    @Test func buildsThatAreNoReleaseAreNamed() {
        var release = BuildDescription.current
        release.configuration = "release"
        release.checksInvariants = false
        var debug = release
        debug.configuration = "debug"
        var checked = release
        checked.checksInvariants = true
        func builds(_ base: BuildDescription, _ new: BuildDescription) -> [String] {
            CompareCommand.warnings(RunResult(build: base), RunResult(build: new))
        }
        #expect(builds(release, release).isEmpty)
        for other in [debug, checked] {
            let lines = builds(other, release) + builds(release, other)
            #expect(lines.map { String($0.prefix(12)) } == ["The base run", "The new run "])
        }
    }

    /// Writes a run with these rows, and returns its path.
    private static func write(
        _ name: String,
        _ rows: [(quantity: String, value: Double)],
        in scratch: ScratchDirectory
    ) throws -> String {
        let path = scratch.path + "/" + name
        let measurements = rows.map { row in
            Measurement(
                workload: "w",
                quantity: row.quantity,
                unit: .nanoseconds,
                better: .lower,
                rounds: Rounds([row.value, row.value])
            )
        }
        try TextFile.write(JSONText.encode(RunResult(measurements: measurements)), to: path)
        return path
    }
}
