extension ReportSection {
    /// Hit ratio against cache size: a plot for each trace and a curve for each policy.
    static func hitRatio(_ runs: [ReportPage.Run]) -> Self {
        let rows = runs.flatMap { run in
            run.result.measurements.compactMap(ReplayRow.init).map { row in
                var row = row
                row.policy = run.label(row.policy, among: runs)
                return row
            }
        }
        var traces: [String] = []
        var policies: [String] = []
        for row in rows {
            if !traces.contains(row.trace) { traces.append(row.trace) }
            if !policies.contains(row.policy) { policies.append(row.policy) }
        }
        let figures = traces.flatMap { trace in
            ["request_hit_ratio", "byte_hit_ratio"].compactMap { quantity in
                plot(rows.filter { $0.trace == trace && $0.quantity == quantity }, policies)
            }
        }
        return Self(
            title: "Hit ratio against cache size",
            explanation: "Recorded request traces, replayed through the engine's own store with "
                + "everything it keeps counted against the capacity.",
            figures: figures
        )
    }

    private static func plot(_ rows: [ReplayRow], _ policies: [String]) -> Markup? {
        guard let first = rows.first else { return nil }
        let series = policies.enumerated().compactMap { index, policy -> LinePlot.Series? in
            let points = rows.filter { $0.policy == policy }
                .map { (x: $0.capacity, y: $0.ratio * 100) }
                .sorted { $0.x < $1.x }
            return points.isEmpty
                ? nil : LinePlot.Series(name: policy, points: points, colour: index)
        }
        let isFraction = first.isFraction
        func size(_ value: Double) -> String {
            isFraction ? "\((value * 100).threeDigits) %" : Unit.bytes.readable(value)
        }
        let what = first.quantity == "request_hit_ratio" ? "requests" : "bytes"
        return LinePlot(
            title: "\(first.trace), \(what)",
            horizontalTitle: isFraction
                ? "memory, as a share of all distinct bytes" : "memory",
            verticalTitle: "hits, percent of \(what)",
            horizontal: PlotScale(.logarithmic, around: rows.map(\.capacity), label: size),
            vertical: PlotScale(.linear, around: rows.map { $0.ratio * 100 }) { $0.threeDigits },
            series: series,
            describe: { "\(size($0)): \($1.fixed(2)) %" }
        ).svg
    }
}

/// One point of a hit-ratio curve.
private struct ReplayRow {
    let trace: String
    var policy: String
    let quantity: String
    let capacity: Double
    let isFraction: Bool
    let ratio: Double

    init?(_ measurement: Measurement) {
        guard measurement.workload == "replay", measurement.quantity.hasSuffix("_hit_ratio"),
            let trace = measurement.parameter("trace")
        else { return nil }
        let fraction = measurement.parameter("memory_fraction").flatMap(Double.init)
        guard let capacity = fraction ?? measurement.parameter("memory").flatMap(Double.init)
        else { return nil }
        self.trace = trace
        self.capacity = capacity
        policy = measurement.parameter("policy") ?? "default"
        quantity = measurement.quantity
        isFraction = fraction != nil
        ratio = measurement.value
    }
}
