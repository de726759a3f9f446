import Benchmarks
import CacheEngine

/// Replays a recorded trace through the engine's memory, with an optional disk.
enum ReplayCommand: Command {
    static let name = "replay"
    static let synopsis =
        "--trace FILE [--format NAME] [--memory BYTES | --memory-fraction F | --curve] "
        + "[--disk BYTES [--directory DIR]] [--unit-size] [--policy NAME,…] [--json FILE]"
    static let summary = "replays recorded requests and tells the hit ratios"
    static let flags: [Arguments.Flag] = [
        .init("--trace", "FILE", "the trace, also packed by gzip or zstd; - is the standard input"),
        .init("--format", "NAME", "auto, " + TraceFormat.names),
        .init("--memory", "BYTES", "memory to use, such as 64M"),
        .init("--memory-fraction", "F", "memory as a share of all distinct bytes (default 0.1)"),
        .init("--curve", nil, "seven sizes of the memory; `report` draws them"),
        .init("--disk", "BYTES", "a disk behind the memory, with real bodies in real files"),
        .init("--directory", "DIR", "where the disk puts its files"),
        .init("--unit-size", nil, "every object counts the same; implied by a trace without sizes"),
        .init("--policy", "NAME,…", policyList + " (default \(policies[0].name))"),
        .init("--json", "FILE", "write the results there as JSON"),
    ]

    /// The first is the engine's default.
    static let policies: [(name: String, policy: EvictionPolicy)] = [
        ("balanced", .sizeAware(.balanced)), ("requests", .sizeAware(.requests)),
        ("bytes", .sizeAware(.bytes)),
    ]

    private static let policyList = policies.map(\.name).joined(separator: ", ")

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        try requireNoWords(arguments)
        guard let path = arguments.value("--trace") else {
            throw UsageError("--trace: the flag is missing; give --trace FILE")
        }
        var options = try options(arguments)
        let disk = try arguments.bytes("--disk")
        if disk != nil, arguments.has("--unit-size") {
            throw UsageError("--disk and --unit-size exclude each other; give one")
        }
        if let disk { try checkRoom(disk, arguments) }
        let file = arguments.value("--json")
        if let file { try TextFile.checkWritable(file) }
        let trace = try read(path, try format(arguments))
        if !trace.hasSizes {
            guard disk == nil else {
                throw UsageError("--disk: \(path) has no sizes; leave the flag out")
            }
            options.sizing = .unit
        }
        Terminal.say(head(path, trace))
        let measurements = try await measure(trace, options, disk, arguments)
        let result = RunResult(measurements: measurements)
        Terminal.say(ResultTable.text(result))
        if let file { try TextFile.write(JSONText.encode(result), to: file) }
        return .success
    }

    /// Throws if a disk cache cannot have that capacity.
    private static func checkRoom(_ disk: Int, _ arguments: Arguments) throws {
        let segments = DiskGeometry.segmentsMax(
            directory: "",
            capacityBytes: disk,
            openFilesMax: .max,
            processors: MachineDescription.coreCount
        )
        guard segments == 0 else { return }
        let text = arguments.value("--disk") ?? ""
        throw UsageError("--disk: `\(text)` is too small for segments; give more")
    }

    private static func read(_ path: String, _ format: TraceFormat?) throws -> RequestTrace {
        var line = Terminal.ProgressLine()
        defer { line.clear() }
        return try RequestTrace(path: path, format: format) { bytes, total in
            line.show("reading the trace", bytes: bytes, of: total)
        }
    }

    /// The requests of the trace, and how its sizes and odd lines are treated.
    static func head(_ path: String, _ trace: RequestTrace) -> String {
        var text = "\(path): \(trace.requests.count) requests of \(trace.objectCount) objects"
        if trace.hasSizes {
            text += ", \(Unit.bytes.readable(Double(trace.distinctBytes))) in all\n"
        } else {
            let unit = Unit.bytes.readable(Double(TraceReplay.unitBytes))
            text += "\nThe trace has no sizes: every object counts \(unit), as with --unit-size\n"
        }
        if trace.hasSizes, trace.requestsWithoutSize > 0 {
            text += "Requests without a length, taken as 0 bytes: \(trace.requestsWithoutSize)\n"
        }
        if trace.skippedLines > 0 {
            text += "Skipped lines without a request: \(trace.skippedLines)\n"
        }
        return text
    }

    /// Replays the trace with every size and policy that is asked for.
    private static func measure(
        _ trace: RequestTrace,
        _ options: TraceReplay.Options,
        _ disk: Int?,
        _ arguments: Arguments
    ) async throws -> [Measurement] {
        let rounds = arguments.has("--curve") ? curve(options) : [options]
        let policies = policyNames(arguments)
        var measurements: [Measurement] = []
        var progress = ReplayProgress(replayCount: rounds.count * policies.count)
        defer { progress.clear() }
        for options in rounds {
            for policy in policies {
                progress.begin(policy)
                measurements += try await measure(trace, options, policy, disk, arguments) {
                    progress.show($0)
                }
            }
        }
        return measurements
    }

    /// The same replay over a range of sizes, as shares of all distinct bytes.
    private static func curve(_ options: TraceReplay.Options) -> [TraceReplay.Options] {
        [0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4].map { fraction in
            var options = options
            options.capacity = .fraction(fraction)
            return options
        }
    }

    private static func measure(
        _ trace: RequestTrace,
        _ options: TraceReplay.Options,
        _ policyName: String,
        _ disk: Int?,
        _ arguments: Arguments,
        progress: (Double) -> Void
    ) async throws -> [Measurement] {
        var options = options
        options.policy = try policy(policyName)
        let report = ReplayReport(
            trace: ReplayReport.traceName(arguments.value("--trace") ?? ""),
            policy: policyName,
            capacity: capacityParameter(options),
            sizing: options.sizing,
            diskBytes: disk,
            skippedLines: trace.skippedLines,
            requestsWithoutSize: trace.requestsWithoutSize
        )
        guard let disk else {
            return report.measurements(TraceReplay(trace).run(options, progress: progress))
        }
        return report.measurements(try await replay(trace, options, disk, arguments, progress))
    }

    private static func replay(
        _ trace: RequestTrace,
        _ options: TraceReplay.Options,
        _ disk: Int,
        _ arguments: Arguments,
        _ progress: (Double) -> Void
    ) async throws -> TieredReplay.Outcome {
        let parent = arguments.value("--directory") ?? WorkloadPlan.defaultScratchDirectory
        let scratch = try ScratchDirectory(in: parent)
        return try await TieredReplay(
            trace,
            memory: MemoryConfiguration(
                capacityBytes: TraceReplay(trace).capacityBytes(options),
                policy: options.policy
            ),
            directory: scratch.path + "/tier",
            diskBytes: disk
        ).run(progress: progress)
    }

    private static func options(_ arguments: Arguments) throws -> TraceReplay.Options {
        var options = TraceReplay.Options(capacity: .fraction(0.1))
        switch (try arguments.bytes("--memory"), try arguments.fraction("--memory-fraction")) {
        case (.some, .some):
            throw UsageError("--memory and --memory-fraction exclude each other; give one")
        case (let bytes?, nil): options.capacity = .bytes(bytes)
        case (nil, let fraction?): options.capacity = .fraction(fraction)
        case (nil, nil): break
        }
        if arguments.has("--curve"),
            arguments.value("--memory") != nil
                || arguments.value("--memory-fraction") != nil
        {
            throw UsageError("--curve and a size of the memory exclude each other; give one")
        }
        if arguments.has("--unit-size") { options.sizing = .unit }
        for name in policyNames(arguments) { _ = try policy(name) }
        return options
    }

    private static func policyNames(_ arguments: Arguments) -> [String] {
        let names = arguments.value("--policy") ?? policies[0].name
        return names.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private static func format(_ arguments: Arguments) throws -> TraceFormat? {
        guard let name = arguments.value("--format"), name != "auto" else { return nil }
        guard let format = TraceFormat(rawValue: name) else {
            throw UsageError(
                "--format: `\(name)` is not a format; give auto or one of \(TraceFormat.names)"
            )
        }
        return format
    }

    static func policy(_ name: String) throws -> EvictionPolicy {
        guard let found = policies.first(where: { $0.name == name }) else {
            throw UsageError("--policy: `\(name)` is not a policy; give one of \(policyList)")
        }
        return found.policy
    }

    private static func capacityParameter(_ options: TraceReplay.Options) -> Measurement.Parameter {
        switch options.capacity {
        case .bytes(let bytes): .init("memory", bytes)
        case .fraction(let fraction): .init("memory_fraction", fraction)
        }
    }
}
