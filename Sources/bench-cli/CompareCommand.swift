import Benchmarks

/// Compares two runs.
enum CompareCommand: Command {
    static let name = "compare"
    static let synopsis = "BASE.json NEW.json [--partial]"
    static let summary =
        "compares two runs; exits 1 if a row regressed beyond the measured noise or is gone"
    static let flags: [Arguments.Flag] = [
        .init("--partial", nil, "the new run may have only some of the base's rows")
    ]

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        guard arguments.positional.count == 2 else {
            throw UsageError("compare takes two files; give bench-cli compare \(synopsis)")
        }
        let (basePath, newPath) = (arguments.positional[0], arguments.positional[1])
        let base = try RunResult.read(basePath)
        let new = try RunResult.read(newPath)
        let comparison = Comparison(base: base, new: new)
        guard comparison.hasCommonRow else {
            throw UsageError("\(newPath): no row is in \(basePath) too; give runs of the same work")
        }
        for line in warnings(base, new) { Terminal.complain(line) }
        Terminal.say(comparison.text)
        let lost = arguments.has("--partial") ? [] : comparison.lost
        for row in lost {
            Terminal.complain("The new run lacks \(row.name); measure it, or give --partial")
        }
        return comparison.hasRegression || !lost.isEmpty ? .failure : .success
    }

    /// The differences of the runs, and their kinds, that make figures unreliable.
    static func warnings(_ base: RunResult, _ new: RunResult) -> [String] {
        var lines: [String] = []
        for (name, run) in [("base", base), ("new", new)] where !run.build.isMeaningful {
            lines.append(
                "The \(name) run is not known to be of a release build without checks "
                    + "(\(run.build.summary)); its times say nothing about the engine."
            )
        }
        if base.machine != new.machine {
            lines.append(
                "The runs are of different machines; their times are judged by ratios alone."
            )
        }
        if base.scale != new.scale {
            lines.append("The runs are of different scales, so rows may be of other work.")
        }
        if base.isShort, new.isShort {
            lines.append("Both runs were --quick; run without it to decide on a small change.")
        }
        return lines
    }
}
