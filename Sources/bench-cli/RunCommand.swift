import Benchmarks

/// Runs workloads and prints their results.
enum RunCommand: Command {
    static let name = "run"
    static let synopsis = "[WORKLOAD…] [--quick] [--threads N] [--keys N] [--json FILE]"
    static let summary = "runs workloads, all of them when none is named"
    static let flags: [Arguments.Flag] = [
        .init("--quick", nil, "shorter rounds and fewer cases: a first impression"),
        .init("--smoke", nil, "the least that runs everything: for tests, not for figures"),
        .init("--threads", "N", "this many threads instead of several tries"),
        .init("--keys", "N", "this many keys instead of several tries"),
        .init("--directory", "DIR", "where disk workloads put their files"),
        .init("--thresholds", "FILE", "exit 1 when an operation allocates more than it may"),
        .init("--json", "FILE", "write the results there as JSON"),
    ]

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        let thresholds = try arguments.value("--thresholds").map(readThresholds)
        var names = arguments.positional
        if names.isEmpty, let thresholds { names = thresholds.allocationsMax.map(\.workload) }
        let workloads = try WorkloadCatalogue.workloads(named: names)
        var plan = WorkloadPlan(scale: try scale(arguments))
        plan.threads = try arguments.count("--threads", atMost: WorkloadPlan.threadsMax)
        plan.keys = try arguments.count("--keys", atMost: WorkloadPlan.keysMax)
        if let directory = arguments.value("--directory") { plan.scratchDirectory = directory }
        let file = arguments.value("--json")
        // Checked before the work, so that an invalid path is reported at once.
        if let file { try TextFile.checkWritable(file) }
        _ = try ScratchDirectory(in: plan.scratchDirectory)
        let measurements = try await measure(workloads, plan)
        let result = RunResult(scale: plan.scale, measurements: measurements)
        Terminal.say(ResultTable.text(result))
        if let file { try TextFile.write(JSONText.encode(result), to: file) }
        let violations = thresholds?.violations(in: result.measurements) ?? []
        for violation in violations { Terminal.complain(violation) }
        return violations.isEmpty ? .success : .failure
    }

    private static func readThresholds(_ path: String) throws -> Thresholds {
        let text = try TextFile.read(path)
        do { return try Thresholds(parsing: text) } catch { throw UsageError("\(path): \(error)") }
    }

    static func scale(_ arguments: Arguments) throws -> WorkloadPlan.Scale {
        switch (arguments.has("--quick"), arguments.has("--smoke")) {
        case (true, true): throw UsageError("--quick and --smoke exclude each other; give one")
        case (true, false): .quick
        case (false, true): .smoke
        case (false, false): .full
        }
    }

    static func measure(
        _ workloads: [Workload],
        _ plan: WorkloadPlan
    ) async throws -> [Measurement] {
        var measurements: [Measurement] = []
        var line = Terminal.ProgressLine()
        defer { line.clear() }
        for (number, workload) in workloads.enumerated() {
            let runner = SuiteRunner(plan: plan) { progress in
                let share = progress.step * 100 / max(1, progress.steps)
                line.show("\(number + 1)/\(workloads.count) \(progress.workload)", percent: share)
            }
            measurements += try await runner.run([workload])
        }
        return measurements
    }
}
