import Benchmarks

/// Draws sampled call stacks as a flame graph.
enum FlameCommand: Command {
    static let name = "flame"
    static let synopsis = "STACKS.txt --output FILE.svg [--title TEXT]"
    static let summary = "draws `perf script` output, or folded stacks, as a flame graph"
    static let flags: [Arguments.Flag] = [
        .init("--output", "FILE.svg", "where the picture goes"),
        .init("--title", "TEXT", "what stands above it"),
        .init("--unit", "NAME", "what one sample is (samples)"),
    ]

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        guard arguments.positional.count == 1 else {
            throw UsageError("flame takes one file; give bench-cli flame \(synopsis)")
        }
        guard let output = arguments.value("--output") else {
            throw UsageError("--output: the flag is missing; give --output FILE.svg")
        }
        let stacks = StackSamples(parsing: try TextFile.read(arguments.positional[0]))
        guard stacks.total > 0 else {
            throw UsageError(
                "\(arguments.positional[0]): the file has no samples; give folded stacks"
            )
        }
        let graph = FlameGraph(
            stacks,
            title: arguments.value("--title") ?? arguments.positional[0],
            unit: arguments.value("--unit") ?? "samples"
        )
        try TextFile.write(graph.svg, to: output)
        Terminal.say(stacks.hottest(15).text)
        Terminal.say(output)
        return .success
    }
}
