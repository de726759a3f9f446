import Benchmarks

/// Draws runs as one HTML page.
enum ReportCommand: Command {
    static let name = "report"
    static let synopsis = "RUN.json… --output FILE.html"
    static let summary = "draws runs as one self-contained page of plots"
    static let flags: [Arguments.Flag] = [
        .init("--output", "FILE.html", "where the page goes")
    ]

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        guard !arguments.positional.isEmpty else {
            throw UsageError("report takes at least one file; give bench-cli report \(synopsis)")
        }
        guard let output = arguments.value("--output") else {
            throw UsageError("--output: the flag is missing; give --output FILE.html")
        }
        let runs = try arguments.positional.map { path in
            ReportPage.Run(name: shortName(path), result: try RunResult.read(path))
        }
        try TextFile.write(ReportPage(runs).html, to: output)
        Terminal.say(output)
        return .success
    }

    /// The file's name without its folders and its ending.
    private static func shortName(_ path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return name.hasSuffix(".json") ? String(name.dropLast(5)) : name
    }
}
