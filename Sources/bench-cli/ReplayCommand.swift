import Benchmarks
import CacheEngine

/// Replays a recorded trace through the engine's memory, with an optional disk.
enum ReplayCommand: Command {
    static let name = "replay"
    static let synopsis =
        "--trace FILE [--memory BYTES | --memory-fraction F] [--disk BYTES] [--unit-size] "
        + "[--policy NAME] [--json FILE]"
    static let summary = "replays a trace (time,id,size lines, also .zst) and tells the hit ratios"
    static let flags: [Arguments.Flag] = [
        .init("--trace", "FILE", "the trace; a name ending in .zst goes through zstd"),
        .init("--memory", "BYTES", "memory to use, such as 64M"),
        .init("--memory-fraction", "F", "memory as a share of all distinct bytes (default 0.1)"),
        .init("--disk", "BYTES", "a disk behind the memory, with real bodies in real files"),
        .init("--directory", "DIR", "where the disk puts its files"),
        .init("--unit-size", nil, "every object counts the same"),
        .init("--policy", "NAME", policies.map(\.name).joined(separator: ", ")),
        .init("--json", "FILE", "write the results there as JSON"),
    ]

    static let policies: [(name: String, policy: EvictionPolicy)] = [
        ("balanced", .sizeAware(.balanced)), ("requests", .sizeAware(.requests)),
        ("bytes", .sizeAware(.bytes)),
    ]

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
        let file = arguments.value("--json")
        if let file { try TextFile.write("", to: file) }
        let trace = try RequestTrace(path: path)
        if case .fraction = options.capacity, disk != nil {
            options.capacity = .bytes(TraceReplay(trace).capacityBytes(options))
        }
        let policy = arguments.value("--policy") ?? "default"
        let report = ReplayReport(
            trace: ReplayReport.traceName(path),
            policy: policy,
            capacity: try capacityParameter(arguments)
        )
        let measurements: [Measurement]
        if let disk {
            let outcome = try await replay(trace, options, disk, arguments)
            measurements = report.measurements(outcome)
        } else {
            measurements = report.measurements(TraceReplay(trace).run(options))
        }
        let result = RunResult(measurements: measurements)
        Terminal.say(ResultTable.text(result))
        if let file { try TextFile.write(JSONText.encode(result), to: file) }
        return .success
    }

    private static func replay(
        _ trace: RequestTrace,
        _ options: TraceReplay.Options,
        _ disk: Int,
        _ arguments: Arguments
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
        ).run()
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
        if arguments.has("--unit-size") { options.sizing = .unit }
        if let name = arguments.value("--policy") { options.policy = try policy(name) }
        return options
    }

    static func policy(_ name: String) throws -> EvictionPolicy {
        guard let found = policies.first(where: { $0.name == name }) else {
            let names = policies.map(\.name).joined(separator: ", ")
            throw UsageError("--policy: `\(name)` is not a policy; give one of \(names)")
        }
        return found.policy
    }

    private static func capacityParameter(_ arguments: Arguments) throws -> Measurement.Parameter {
        if let bytes = try arguments.bytes("--memory") { return .init("memory", bytes) }
        return .init("memory_fraction", try arguments.fraction("--memory-fraction") ?? 0.1)
    }
}
