/// What the engine is to reach in one respect, and how a run tells whether it does.
package struct Target: Sendable {
    /// Which number of a row is held against the limit.
    package enum Subject: Hashable, Sendable {
        case value
        case p99
        case ratio(to: String)
    }

    /// Where the good side ends.
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

    /// The comparison it belongs to: memory, disk, proxy, hit-ratio.
    package let comparison: String
    package let title: String
    let workload: String
    let quantity: String
    package let subject: Subject
    let limit: Limit
    /// The rows it speaks of, by their parameters.
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

    /// One row held against the target.
    package struct Judgement: Sendable {
        package let target: Target
        package let measurement: Measurement?
        /// The number that counts, or nil where nothing was measured.
        package let number: Double?

        package var isMet: Bool? { number.map(target.limit.isMet) }
    }

    /// A judgement for each row it concerns; one without a row when none was measured.
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

/// Targets and what became of them, as a table.
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
