import Benchmarks

/// Runs the engine and its peers in alternation.
///
/// `perf/compare` installs and builds the peers first.
enum VersusCommand: Command {
    static let name = "versus"
    static let synopsis = "memory|disk --peer NAME=COMMAND… [--quick] [--json FILE]"
    static let summary = "runs beside peer programs; perf/compare prepares them and calls this"
    static let flags: [Arguments.Flag] = [
        .init("--peer", "NAME=COMMAND", "a peer and its command of the shell; may be repeated"),
        .init("--quick", nil, "shorter rounds"),
        .init("--smoke", nil, "the least that runs everything: for tests, not for figures"),
        .init("--directory", "DIR", "where disk workloads put their files"),
        .init("--json", "FILE", "write the results there as JSON"),
    ]

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        guard arguments.positional.count == 1, let name = arguments.positional.first,
            let versus = Versus(rawValue: name)
        else {
            throw UsageError("versus takes memory or disk; give bench-cli versus \(synopsis)")
        }
        var plan = WorkloadPlan(scale: try RunCommand.scale(arguments))
        if let directory = arguments.value("--directory") { plan.scratchDirectory = directory }
        let peers = try arguments.values("--peer").map(PeerProgram.Launch.init(parsing:))
        guard !peers.isEmpty else {
            throw UsageError(
                "--peer: no peer is given; give --peer NAME=COMMAND, or run perf/compare \(name)"
            )
        }
        let file = arguments.value("--json")
        if let file { try TextFile.checkWritable(file) }
        for line in try versus.descriptions(peers, plan) { Terminal.say(line) }
        let workloads = try versus.workloads(peers)
        let measurements = try await RunCommand.measure(workloads, plan)
        let result = RunResult(scale: plan.scale, measurements: measurements)
        Terminal.say("\n" + ResultTable.text(result))
        Terminal.say(TargetTable.text(name, result.measurements))
        if let file { try TextFile.write(JSONText.encode(result), to: file) }
        return .success
    }
}
