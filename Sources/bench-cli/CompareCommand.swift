import Benchmarks

/// Compares two runs.
enum CompareCommand: Command {
    static let name = "compare"
    static let synopsis = "BASE.json NEW.json"
    static let summary = "compares two runs; exits 1 on a regression beyond the measured noise"
    static let flags: [Arguments.Flag] = []

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        guard arguments.positional.count == 2 else {
            throw UsageError("compare takes two files; give bench-cli compare \(synopsis)")
        }
        let base = try RunResult.read(arguments.positional[0])
        let new = try RunResult.read(arguments.positional[1])
        if base.machine != new.machine {
            Terminal.complain(
                "The runs are of different machines; their times are judged by ratios alone."
            )
        }
        if base.scale != new.scale {
            Terminal.complain("The runs are of different scales, so rows may be of other work.")
        }
        if base.isShort, new.isShort {
            Terminal.complain("Both runs were --quick; run without it to decide on a small change.")
        }
        let comparison = Comparison(base: base, new: new)
        Terminal.say(comparison.text)
        return comparison.hasRegression ? .failure : .success
    }
}
