/// Metrics in the Prometheus text format.
package struct PrometheusText {
    package typealias Kind = HTTPCache.Statistics.Metric.Kind

    /// A sample: its labels, in braces or empty, and its value.
    package typealias Row = (labels: String, value: Double)

    package private(set) var text = ""
    /// Precedes each name, with an underscore.
    private let prefix: String

    package init(prefix: String) { self.prefix = prefix }

    /// Adds a metric of one sample.
    package mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: Int) {
        add(name, kind, help, [("", Double(value))])
    }

    /// Adds a metric and its samples.
    package mutating func add(_ name: String, _ kind: Kind, _ help: String, _ rows: [Row]) {
        begin(name, kind.rawValue, help)
        for row in rows { addRow("\(name)\(row.labels)", row.value) }
    }

    /// Adds a metric of the statistics.
    mutating func add(_ metric: HTTPCache.Statistics.Metric) {
        let rows = metric.samples.map { sample in
            let labels = metric.label.map { Self.label($0, sample.label) } ?? ""
            return (labels, Double(sample.value))
        }
        add(metric.name, metric.kind, metric.help, rows)
    }

    /// Adds the counts of a histogram by their upper bounds, their number, and the sum of the values
    /// that were counted.
    package mutating func add(
        histogram name: String,
        _ help: String,
        _ counts: [(upperBound: Double, count: Int)],
        sum: Double
    ) {
        begin(name, "histogram", help)
        var number = 0
        for (bound, count) in counts {
            number += count
            let label = bound.isFinite ? Self.number(bound) : "+Inf"
            addRow("\(name)_bucket{le=\"\(label)\"}", Double(number))
        }
        addRow("\(name)_sum", sum)
        addRow("\(name)_count", Double(number))
    }

    private mutating func begin(_ name: String, _ type: String, _ help: String) {
        text += "# HELP \(prefix)_\(name) \(help)\n# TYPE \(prefix)_\(name) \(type)\n"
    }

    private mutating func addRow(_ name: String, _ value: Double) {
        text += "\(prefix)_\(name) \(Self.number(value))\n"
    }

    /// A label in braces; `\`, `"` and line feeds of the value are escaped.
    package static func label(_ name: String, _ value: String) -> String {
        var escaped = ""
        for character in value.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return "{\(name)=\"\(escaped)\"}"
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}

extension HTTPCache.Statistics {
    /// Returns the counters in the Prometheus text format, each name preceded by `prefix`.
    public func prometheusText(prefix: String = "cache") -> String {
        var text = PrometheusText(prefix: prefix)
        for metric in metrics { text.add(metric) }
        text.add(
            histogram: "wait_milliseconds",
            "Time that requests waited for the fetch of another one.",
            waitMilliseconds,
            sum: totalWait / .milliseconds(1)
        )
        return text.text
    }
}
