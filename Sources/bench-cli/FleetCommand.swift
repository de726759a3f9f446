import Benchmarks

/// Measures several machines over a Redis server.
enum FleetCommand: Command {
    static let name = "fleet"
    static let synopsis = "[--quick] [--json FILE]"
    static let summary = "runs several machines over redis-server processes that it starts"
    static let flags: [Arguments.Flag] = [
        .init("--quick", nil, "shorter rounds"),
        .init("--smoke", nil, "the least that runs everything: for tests, not for figures"),
        .init("--directory", "DIR", "where the servers put their files"),
        .init("--json", "FILE", "write the results there as JSON"),
    ]

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        try requireNoWords(arguments)
        var plan = WorkloadPlan(scale: try RunCommand.scale(arguments))
        if let directory = arguments.value("--directory") { plan.scratchDirectory = directory }
        let file = arguments.value("--json")
        if let file { try TextFile.checkWritable(file) }
        let measurements = try await RunCommand.measure(WorkloadCatalogue.fleet, plan)
        let result = RunResult(scale: plan.scale, measurements: measurements)
        Terminal.say("\n" + ResultTable.text(result))
        Terminal.say(TargetTable.text(name, result.measurements))
        if let file { try TextFile.write(JSONText.encode(result), to: file) }
        return .success
    }
}
