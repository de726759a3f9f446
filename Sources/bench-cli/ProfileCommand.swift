import Benchmarks

/// Repeats one workload for an external profiler.
enum ProfileCommand: Command {
    static let name = "profile"
    static let synopsis = "WORKLOAD --seconds N"
    static let summary = "repeats a workload for an outside profiler to look at"
    static let flags: [Arguments.Flag] = [
        .init("--seconds", "N", "how long"),
        .init("--threads", "N", "this many threads"),
        .init("--keys", "N", "this many keys"),
        .init("--directory", "DIR", "where disk workloads put their files"),
    ]

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        guard arguments.positional.count == 1 else {
            throw UsageError("profile takes one workload; give bench-cli profile \(synopsis)")
        }
        guard let seconds = try arguments.seconds("--seconds") else {
            throw UsageError("--seconds: the flag is missing; give --seconds N")
        }
        let workload = try WorkloadCatalogue.workloads(named: arguments.positional)[0]
        var plan = WorkloadPlan(scale: .quick)
        plan.threads = try arguments.count("--threads", atMost: WorkloadPlan.threadsMax)
        plan.keys = try arguments.count("--keys", atMost: WorkloadPlan.keysMax)
        if let directory = arguments.value("--directory") { plan.scratchDirectory = directory }
        let load = SteadyLoad(workload: workload, plan: plan, seconds: seconds)
        Terminal.say(try await outcome(of: load).text)
        return .success
    }

    private static func outcome(of load: SteadyLoad) async throws -> SteadyLoad.Outcome {
        var line = Terminal.ProgressLine()
        defer { line.clear() }
        return try await load.run { line.show("repeating \(load.workload.name)", percent: $0) }
    }
}
