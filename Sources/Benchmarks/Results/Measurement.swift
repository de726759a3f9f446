/// One figure of a run, with its rounds and its ratio to a peer.
package struct Measurement: Hashable, Sendable {
    /// Which direction is an improvement.
    package enum Direction: String, Hashable, Sendable {
        case lower
        case higher
    }

    /// The ratio of our value to that of a peer that did the same work in the same run.
    package struct Ratio: Hashable, Sendable {
        package let peer: String
        package let value: Double

        package init(to peer: String, _ value: Double) {
            self.peer = peer
            self.value = value
        }
    }

    /// A setting of the workload, such as its number of keys.
    package struct Parameter: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: some CustomStringConvertible) {
            self.name = name
            self.value = value.description
        }
    }

    package let workload: String
    /// The measured quantity, without the parameters.
    package let quantity: String
    package let parameters: [Parameter]
    package let unit: Unit
    package let better: Direction
    package let rounds: Rounds
    package var percentiles: Percentiles?
    package var ratio: Ratio?
    /// The speed probe's time during the run, in nanoseconds.
    package var probeNanoseconds: Double?

    package init(
        workload: String,
        quantity: String,
        parameters: [Parameter] = [],
        unit: Unit,
        better: Direction,
        rounds: Rounds,
        percentiles: Percentiles? = nil,
        ratio: Ratio? = nil,
        probeNanoseconds: Double? = nil
    ) {
        self.workload = workload
        self.quantity = quantity
        self.parameters = parameters
        self.unit = unit
        self.better = better
        self.rounds = rounds
        self.percentiles = percentiles
        self.ratio = ratio
        self.probeNanoseconds = probeNanoseconds
    }

    /// The median over the rounds.
    package var value: Double { rounds.median }

    /// The quantity with its parameters, unique within a workload.
    package var metric: String {
        ([quantity] + parameters.map { "\($0.name)=\($0.value)" }).joined(separator: " ")
    }

    package func parameter(_ name: String) -> String? {
        parameters.first { $0.name == name }?.value
    }
}

extension Measurement {
    package var json: JSONValue {
        .object(of: [
            ("workload", .string(workload)),
            ("metric", .string(metric)),
            ("unit", .string(unit.rawValue)),
            ("value", .number(value)),
            ("better", .string(better.rawValue)),
            (
                "percentiles",
                percentiles.map { .object(of: $0.named.map { ($0.name, .number($0.value)) }) }
            ),
            ("ratio_to", ratio.map { .string($0.peer) }),
            ("ratio", ratio.map { .number($0.value) }),
            (
                "parameters",
                parameters.isEmpty
                    ? nil : .object(of: parameters.map { ($0.name, .string($0.value)) })
            ),
            ("rounds", .array(rounds.values.map { .number($0) })),
            ("probe", probeNanoseconds.map { .number($0) }),
        ])
    }

    /// Parses a row; a row without rounds, from another tool, counts as one round.
    package init?(_ json: JSONValue) {
        guard let workload = json["workload"]?.text, let metric = json["metric"]?.text,
            let unit = json["unit"]?.text, let value = json["value"]?.double
        else { return nil }
        let parameters = (json["parameters"]?.members ?? []).compactMap { member in
            member.value.text.map { Parameter(member.name, $0) }
        }
        let suffix = parameters.map { " \($0.name)=\($0.value)" }.joined()
        self.init(
            workload: workload,
            quantity: metric.hasSuffix(suffix) ? String(metric.dropLast(suffix.count)) : metric,
            parameters: metric.hasSuffix(suffix) ? parameters : [],
            unit: Unit(rawValue: unit),
            better: json["better"]?.text.flatMap(Direction.init(rawValue:)) ?? .lower,
            rounds: Rounds(json["rounds"]?.elements?.compactMap(\.double) ?? [value]),
            percentiles: json["percentiles"].flatMap(Percentiles.init),
            probeNanoseconds: json["probe"]?.double
        )
        if let peer = json["ratio_to"]?.text, let value = json["ratio"]?.double {
            ratio = Ratio(to: peer, value)
        }
    }
}

extension Percentiles {
    init?(_ json: JSONValue) {
        func value(_ name: String) -> Double? { json[name]?.double }
        guard let p50 = value("p50"), let p90 = value("p90"), let p99 = value("p99"),
            let p999 = value("p99.9"), let max = value("max")
        else { return nil }
        self.init(p50: p50, p90: p90, p99: p99, p999: p999, max: max)
    }
}
