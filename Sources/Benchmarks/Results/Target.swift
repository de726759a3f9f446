/// A goal for the engine in one respect, and the check whether a run meets it.
package struct Target: Sendable {
    /// The number of a row that is compared with the limit.
    package enum Subject: Hashable, Sendable {
        case value
        case p99
        case ratio(to: String)
    }

    /// The limit between meeting and missing the target.
    package enum Limit: Hashable, Sendable {
        case atMost(Double)
        case atLeast(Double)

        func isMet(by value: Double) -> Bool {
            switch self {
            case .atMost(let limit): value <= limit
            case .atLeast(let limit): value >= limit
            }
        }
    }

    /// The comparison that contains the target: memory, disk, hit-ratio or fleet.
    package let comparison: String
    package let title: String
    package let workload: String
    let quantity: String
    package let subject: Subject
    let limit: Limit
    /// Selects the rows of the target by their parameters.
    let concerns: @Sendable (Measurement) -> Bool

    package init(
        _ comparison: String,
        _ title: String,
        _ workload: String,
        _ quantity: String,
        _ subject: Subject,
        _ limit: Limit,
        concerning concerns: @escaping @Sendable (Measurement) -> Bool = { _ in true }
    ) {
        self.comparison = comparison
        self.title = title
        self.workload = workload
        self.quantity = quantity
        self.subject = subject
        self.limit = limit
        self.concerns = concerns
    }

    /// The comparison of one row with the target.
    package struct Judgement: Sendable {
        package let target: Target
        package let measurement: Measurement?
        /// The number compared with the limit, or `nil` if nothing was measured.
        package let number: Double?

        package var isMet: Bool? { number.map(target.limit.isMet) }
    }

    /// Returns a judgement for each row of the target, or one without a row if none was measured.
    package func judge(_ measurements: [Measurement]) -> [Judgement] {
        let judged = measurements.compactMap { one -> Judgement? in
            guard one.workload == workload, one.quantity == quantity, concerns(one) else {
                return nil
            }
            return number(of: one).map { Judgement(target: self, measurement: one, number: $0) }
        }
        return judged.isEmpty ? [Judgement(target: self, measurement: nil, number: nil)] : judged
    }

    private func number(of one: Measurement) -> Double? {
        switch subject {
        case .value: one.value
        case .p99: one.percentiles?.p99
        case .ratio(let peer): one.ratio?.peer == peer ? one.ratio?.value : nil
        }
    }

    func readable(_ number: Double, unit: Unit?) -> String {
        if case .ratio(let peer) = subject { return "\(number.fixed(2)) x \(peer)" }
        return unit?.readable(number) ?? number.threeDigits
    }

    func readableLimit(unit: Unit?) -> String {
        switch limit {
        case .atMost(let limit): "≤ \(readable(limit, unit: unit))"
        case .atLeast(let limit): "≥ \(readable(limit, unit: unit))"
        }
    }
}

/// The targets and their judgements as a table.
package enum TargetTable {
    package static func text(_ comparison: String, _ measurements: [Measurement]) -> String {
        var table = TextTable([
            ("target", .left), ("case", .left), ("limit", .right), ("found", .right),
            ("ours", .right), ("theirs", .right), ("", .left),
        ])
        for target in Target.all where target.comparison == comparison {
            for (index, judgement) in target.judge(measurements).enumerated() {
                table.append(cells(judgement, isFirst: index == 0))
            }
        }
        return table.text
    }

    private static func cells(_ judgement: Target.Judgement, isFirst: Bool) -> [String] {
        let target = judgement.target
        let measurement = judgement.measurement
        let unit = measurement?.unit
        let setting = measurement?.parameters.map { "\($0.name) \($0.value)" } ?? []
        let theirs = measurement.flatMap { one in
            one.ratio.map { one.unit.readable($0.value == 0 ? 0 : one.value / $0.value) }
        }
        let verdict = judgement.isMet.map { $0 ? "met" : "MISSED" } ?? "not measured"
        return [
            isFirst ? target.title : "",
            setting.joined(separator: ", "),
            target.readableLimit(unit: unit),
            judgement.number.map { target.readable($0, unit: unit) } ?? "-",
            measurement.map { $0.unit.readable($0.value) } ?? "-",
            theirs ?? "",
            verdict,
        ]
    }
}
