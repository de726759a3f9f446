extension ReportSection {
    /// Hit ratio against cache size: plots for each trace, and a curve for each setting.
    static func hitRatio(_ runs: [ReportPage.Run]) -> Self {
        let rows = runs.flatMap { run in
            run.result.measurements.compactMap(ReplayRow.init).map { row in
                var row = row
                row.label = run.label(row.setting, among: runs)
                return row
            }
        }
        var traces: [String] = []
        // The curves of several runs with the same setting lie side by side.
        var curves: [(setting: String, label: String)] = []
        for row in rows {
            if !traces.contains(row.trace) { traces.append(row.trace) }
            guard !curves.contains(where: { $0.label == row.label }) else { continue }
            let end = curves.lastIndex { $0.setting == row.setting }.map { $0 + 1 } ?? curves.count
            curves.insert((row.setting, row.label), at: end)
        }
        let labels = curves.map(\.label)
        var figures: [Markup] = []
        for trace in traces {
            for quantity in ["request_hit_ratio", "byte_hit_ratio"] {
                let drawn = rows.filter { $0.trace == trace && $0.quantity == quantity }
                // Shares and bytes have axes of their own.
                figures += plots(drawn.filter(\.isFraction), labels)
                figures += plots(drawn.filter { !$0.isFraction }, labels)
            }
        }
        return Self(
            title: "Hit ratio against cache size",
            explanation: "Recorded request traces, replayed through the engine's own store with "
                + "everything it keeps counted against the capacity.",
            figures: figures
        )
    }

    /// The curves of rows with one trace, one quantity and one kind of size.
    private static func plots(_ rows: [ReplayRow], _ labels: [String]) -> [Markup] {
        guard let first = rows.first else { return [] }
        let series = labels.enumerated().compactMap { index, label -> LinePlot.Series? in
            let points = rows.filter { $0.label == label }
                .map { (x: $0.capacity, y: $0.ratio * 100) }
                .sorted { $0.x < $1.x }
            return points.isEmpty
                ? nil : LinePlot.Series(name: label, points: points, colour: index)
        }
        let isFraction = first.isFraction
        func size(_ value: Double) -> String {
            isFraction ? "\((value * 100).threeDigits) %" : Unit.bytes.readable(value)
        }
        let what = first.quantity == "request_hit_ratio" ? "requests" : "bytes"
        let horizontal = PlotScale(.logarithmic, around: rows.map(\.capacity), label: size)
        let vertical = PlotScale(.linear, around: rows.map { $0.ratio * 100 }) { $0.threeDigits }
        return LinePlot.split(series, title: "\(first.trace), \(what)").map { part in
            LinePlot(
                title: part.title,
                horizontalTitle: isFraction
                    ? "memory, as a share of all distinct bytes" : "memory",
                verticalTitle: "hits, percent of \(what)",
                horizontal: horizontal,
                vertical: vertical,
                series: part.series,
                describe: { "\(size($0)): \($1.fixed(2)) %" }
            ).svg
        }
    }
}

/// One point of a hit-ratio curve.
private struct ReplayRow {
    let trace: String
    /// The policy, and what else distinguishes the replay besides its memory.
    let setting: String
    /// The name of the curve; the setting, and the run's name if there are several.
    var label: String
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
        var parts = [measurement.parameter("policy") ?? "default"]
        if let sizes = measurement.parameter("sizes") { parts.append("sizes \(sizes)") }
        if let disk = measurement.parameter("disk").flatMap(Double.init) {
            parts.append("disk \(Unit.bytes.readable(disk))")
        }
        setting = parts.joined(separator: ", ")
        label = setting
        quantity = measurement.quantity
        isFraction = fraction != nil
        ratio = measurement.value
    }
}
