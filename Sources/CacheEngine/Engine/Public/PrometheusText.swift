/// Metrics in the Prometheus text format.
package struct PrometheusText {
    package enum Kind: String {
        case counter, gauge, histogram
    }

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
        begin(name, kind, help)
        for row in rows { addRow("\(name)\(row.labels)", row.value) }
    }

    /// Adds the counts of a histogram by their upper bounds, and their sum.
    package mutating func add(
        histogram name: String,
        _ help: String,
        _ counts: [(upperBound: Double, count: Int)]
    ) {
        begin(name, .histogram, help)
        var sum = 0
        for (bound, count) in counts {
            sum += count
            let label = bound.isFinite ? Self.number(bound) : "+Inf"
            addRow("\(name)_bucket{le=\"\(label)\"}", Double(sum))
        }
        addRow("\(name)_count", Double(sum))
    }

    private mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
        text += "# HELP \(prefix)_\(name) \(help)\n# TYPE \(prefix)_\(name) \(kind.rawValue)\n"
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
