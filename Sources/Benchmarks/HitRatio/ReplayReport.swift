/// The outcome of a replay as rows of a result.
package struct ReplayReport {
    private let parameters: [Measurement.Parameter]
    private let skippedLines: Int
    private let requestsWithoutSize: Int

    package init(
        trace: String,
        policy: String,
        capacity: Measurement.Parameter,
        sizing: TraceReplay.Sizing = .recorded,
        diskBytes: Int? = nil,
        skippedLines: Int = 0,
        requestsWithoutSize: Int = 0
    ) {
        var parameters: [Measurement.Parameter] = [
            .init("trace", trace), .init("policy", policy), capacity,
        ]
        if sizing == .unit { parameters.append(.init("sizes", "unit")) }
        if let diskBytes { parameters.append(.init("disk", diskBytes)) }
        self.parameters = parameters
        self.skippedLines = skippedLines
        self.requestsWithoutSize = requestsWithoutSize
    }

    /// The file's name without its folders and the endings of archives and tables.
    package static func traceName(_ path: String) -> String {
        let name = TraceSource(path: path).name
        return name.hasSuffix(".csv") ? String(name.dropLast(4)) : name
    }

    package func measurements(_ outcome: TraceReplay.Outcome) -> [Measurement] {
        let peak = Double(outcome.usedBytesPeak) / Double(max(1, outcome.capacityBytes))
        return hitRatios(outcome.requestHitRatio, outcome.byteHitRatio) + [
            row("requests", Double(outcome.requests), .count, .higher),
            row("throughput", outcome.requestsPerSecond, .operationsPerSecond, .higher),
            row("overhead_per_entry", outcome.overheadBytesPerEntry, .bytes, .lower),
            row("memory_peak_over_capacity", peak, .share, .lower),
        ] + oddLines
    }

    package func measurements(_ outcome: TieredReplay.Outcome) -> [Measurement] {
        hitRatios(outcome.requestHitRatio, outcome.byteHitRatio) + [
            row("memory_hit_ratio", outcome.memory.requestHitRatio, .share, .higher),
            row("throughput", outcome.memory.requestsPerSecond, .operationsPerSecond, .higher),
            row("bytes_written", Double(outcome.bytesWritten), .bytes, .lower),
        ] + oddLines
    }

    /// Few traces have such lines, so a row without any would say nothing.
    private var oddLines: [Measurement] {
        [("skipped_lines", skippedLines), ("requests_without_length", requestsWithoutSize)]
            .filter { $0.1 > 0 }
            .map { row($0.0, Double($0.1), .count, .lower) }
    }

    func hitRatios(_ requests: Double, _ bytes: Double) -> [Measurement] {
        [
            row("request_hit_ratio", requests, .share, .higher),
            row("byte_hit_ratio", bytes, .share, .higher),
        ]
    }

    private func row(
        _ quantity: String,
        _ value: Double,
        _ unit: Unit,
        _ better: Measurement.Direction
    ) -> Measurement {
        Measurement(
            workload: "replay",
            quantity: quantity,
            parameters: parameters,
            unit: unit,
            better: better,
            rounds: Rounds([value])
        )
    }
}
