import Benchmarks

/// Replays every trace of the reference and compares our hit ratios with it.
enum HitRatioCommand: Command {
    static let name = "hit-ratio"
    static let synopsis = "--traces DIR [--reference FILE] [--policy NAME] [--json FILE]"
    static let summary = "holds our hit ratios against recorded ones of other policies"
    static let flags: [Arguments.Flag] = [
        .init("--traces", "DIR", "where the traces lie, NAME.csv or NAME.csv.zst"),
        .init("--reference", "FILE", "the recorded ratios (perf/hit-ratio-reference.csv)"),
        .init("--policy", "NAME", "the policy to replay instead of the default"),
        .init("--json", "FILE", "write the results there as JSON"),
    ]

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        try requireNoWords(arguments)
        guard let directory = arguments.value("--traces") else {
            throw UsageError("--traces: the flag is missing; give the directory of the traces")
        }
        let path = arguments.value("--reference") ?? "perf/hit-ratio-reference.csv"
        let reference = try readReference(path)
        let policy = try arguments.value("--policy").map(ReplayCommand.policy)
        let file = arguments.value("--json")
        if let file { try TextFile.checkWritable(file) }
        var line = Terminal.ProgressLine()
        defer { line.clear() }
        let replays = HitRatioReplays(directory: directory, reference: reference)
        let (score, measurements) = try replays.run(policy: policy) { step, share in
            line.show(step, percent: Int(share * 100))
        }
        line.clear()
        Terminal.say(score.text)
        Terminal.say(TargetTable.text("hit-ratio", score.measurements))
        if !replays.missing.isEmpty {
            Terminal.say("Missing traces: \(replays.missing.joined(separator: ", "))")
        }
        let result = RunResult(measurements: score.measurements + measurements)
        if let file { try TextFile.write(JSONText.encode(result), to: file) }
        return .success
    }

    private static func readReference(_ path: String) throws -> HitRatioReference {
        let text = try TextFile.read(path)
        do { return try HitRatioReference(parsing: text) } catch {
            throw UsageError("\(path): \(error)")
        }
    }
}
