/// A run as a readable table, with a block of rows for each workload.
package enum ResultTable {
    package static func text(_ result: RunResult) -> String {
        var text = result.machine.summary + "\n" + result.build.summary + "\n"
        if !result.build.isMeaningful {
            text += "This is not a release build: its times say nothing about the engine.\n"
        }
        var table = TextTable([
            ("workload", .left), ("what", .left), ("value", .right), ("noise", .right),
            ("p50", .right), ("p99", .right), ("p99.9", .right), ("max", .right),
            ("against", .left), ("ratio", .right),
        ])
        var previous = ""
        for measurement in result.measurements {
            let name = measurement.workload == previous ? "" : measurement.workload
            previous = measurement.workload
            table.append(cells(measurement, name: name))
        }
        return text + "\n" + table.text
    }

    private static func cells(_ measurement: Measurement, name: String) -> [String] {
        func time(_ value: Double?) -> String { value.map(Unit.nanoseconds.readable) ?? "" }
        let percentiles = measurement.percentiles
        return [
            name,
            measurement.metric,
            measurement.unit.readable(measurement.value),
            measurement.rounds.noiseText,
            time(percentiles?.p50),
            time(percentiles?.p99),
            time(percentiles?.p999),
            time(percentiles?.max),
            measurement.ratio?.peer ?? "",
            measurement.ratio.map { "\($0.value.fixed(2)) x" } ?? "",
        ]
    }
}

extension Rounds {
    /// Half the distance between the fastest and the slowest round, as a share of the median.
    var noiseText: String {
        switch spread {
        case 0: ""
        case 2...: "±>99 %"
        default: "±\((spread * 50).fixed(0)) %"
        }
    }
}

extension Comparison {
    /// The comparison as a table with verdicts, followed by a summary line.
    package var text: String {
        var table = TextTable(Self.columns)
        for row in rows { table.append(row.cells) }
        return table.text + "\n" + summary + "\n"
    }

    static let columns: [(title: String, alignment: TextTable.Alignment)] = [
        ("workload", .left), ("what", .left), ("base", .right), ("new", .right),
        ("change", .right), ("noise", .right), ("verdict", .left),
    ]

    /// The number of rows of each verdict.
    var summary: String {
        let others: [Comparison.Verdict] = [
            .regressed, .improved, .undecided, .added, .removed,
        ]
        let counts = others.filter { count($0) > 0 }.map { "\(count($0)) \($0.rawValue)" }
        let verdicts = counts.isEmpty ? "no change" : counts.joined(separator: ", ")
        return "\(rows.count) rows: \(verdicts)"
    }
}

extension Comparison.Row {
    /// The texts of the columns.
    var cells: [String] {
        func value(_ measurement: Measurement?) -> String {
            measurement.map { $0.unit.readable($0.value) } ?? "-"
        }
        let isPair = base != nil && new != nil
        return [
            workload, metric, value(base), value(new),
            isPair ? Self.percent(change) : "",
            isPair ? "±" + Self.percent(noise, signed: .never) : "",
            verdict.rawValue,
        ]
    }

    private enum Sign { case always, never }

    private static func percent(_ share: Double, signed: Sign = .always) -> String {
        guard share.isFinite else { return "∞ %" }
        let sign = signed == .always && share > 0 ? "+" : ""
        return "\(sign)\((share * 100).fixed(1)) %"
    }
}
