/// One figure of a run, with its rounds and its ratio to a peer.
package struct Measurement: Hashable, Sendable {
    /// Which direction is an improvement.
    package enum Direction: String, Hashable, Codable, Sendable {
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
    /// In the order of their names.
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
        self.parameters = parameters.sorted { $0.name < $1.name }
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

extension Measurement: Codable {
    private enum Member: String, CodingKey {
        case workload, metric, parameters, unit, value, better, percentiles, ratio, rounds, probe
        case peer = "ratio_to"
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Member.self)
        try members.encode(workload, forKey: .workload)
        try members.encode(quantity, forKey: .metric)
        if !parameters.isEmpty {
            let pairs = parameters.map { ($0.name, $0.value) }
            try members.encode(
                Dictionary(pairs) { first, _ in first },
                forKey: .parameters
            )
        }
        try members.encode(unit, forKey: .unit)
        try members.encode(value, forKey: .value)
        try members.encode(better, forKey: .better)
        try members.encodeIfPresent(percentiles, forKey: .percentiles)
        try members.encodeIfPresent(ratio?.peer, forKey: .peer)
        try members.encodeIfPresent(ratio?.value, forKey: .ratio)
        try members.encode(rounds.values, forKey: .rounds)
        try members.encodeIfPresent(probeNanoseconds, forKey: .probe)
    }

    /// Reads a row; a row without rounds, from another tool, counts as one round.
    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Member.self)
        let value = try members.decode(Double.self, forKey: .value)
        let parameters =
            try members.decodeIfPresent([String: String].self, forKey: .parameters) ?? [:]
        let rounds = try members.decodeIfPresent([Double].self, forKey: .rounds)
        let better = try members.decodeIfPresent(Direction.self, forKey: .better)
        self.init(
            workload: try members.decode(String.self, forKey: .workload),
            quantity: try members.decode(String.self, forKey: .metric),
            parameters: parameters.map { Parameter($0.key, $0.value) },
            unit: try members.decode(Unit.self, forKey: .unit),
            better: better ?? .lower,
            rounds: Rounds(rounds ?? [value]),
            percentiles: try members.decodeIfPresent(Percentiles.self, forKey: .percentiles),
            probeNanoseconds: try members.decodeIfPresent(Double.self, forKey: .probe)
        )
        if let peer = try members.decodeIfPresent(String.self, forKey: .peer),
            let value = try members.decodeIfPresent(Double.self, forKey: .ratio)
        {
            ratio = Ratio(to: peer, value)
        }
    }
}
