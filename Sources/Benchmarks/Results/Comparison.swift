/// Two runs held side by side, row by row, with a verdict that the noise allows.
///
/// A row has changed when its medians are further apart than everything the noise explains: the
/// distance between fastest and slowest round of both runs, what the speed probe says the machine
/// itself drifted, and a floor for what no round shows (memory layout, a neighbour on the host).
package struct Comparison: Sendable {
    /// What became of one row.
    package enum Verdict: String, Sendable {
        case unchanged = "no change"
        case improved
        case regressed
        case added = "new"
        case removed = "gone"
    }

    package struct Row: Sendable {
        package let workload: String
        package let metric: String
        package let base: Measurement?
        package let new: Measurement?
        /// How much of the base the new value is off, positive for more.
        package let change: Double
        /// The largest change that says nothing.
        package let noise: Double
        package let verdict: Verdict
    }

    /// Two runs of one program differ by as much even where every round agrees.
    package static let timingFloor = 0.08
    /// Counts and sizes hardly vary; a change of an allocation in a hundred is one.
    package static let countingFloor = 0.01

    package let rows: [Row]

    package init(base: RunResult, new: RunResult) {
        var rows: [Row] = []
        let newByKey = Dictionary(
            new.measurements.map { (Key($0), $0) },
            uniquingKeysWith: { first, _ in first }
        )
        let baseKeys = Set(base.measurements.map(Key.init))
        for measurement in base.measurements {
            rows.append(Self.row(base: measurement, new: newByKey[Key(measurement)]))
        }
        for measurement in new.measurements where !baseKeys.contains(Key(measurement)) {
            rows.append(Self.row(base: nil, new: measurement))
        }
        self.rows = rows
    }

    package var hasRegression: Bool { rows.contains { $0.verdict == .regressed } }

    package func count(_ verdict: Verdict) -> Int { rows.count { $0.verdict == verdict } }

    /// What makes two rows the same question.
    private struct Key: Hashable {
        let workload: String
        let metric: String
        let peer: String?

        init(_ measurement: Measurement) {
            workload = measurement.workload
            metric = measurement.metric
            peer = measurement.ratio?.peer
        }
    }

    private static func row(base: Measurement?, new: Measurement?) -> Row {
        guard let base, let new else {
            let only = base ?? new
            return Row(
                workload: only?.workload ?? "",
                metric: only?.metric ?? "",
                base: base,
                new: new,
                change: 0,
                noise: 0,
                verdict: base == nil ? .added : .removed
            )
        }
        let change = relativeChange(from: base.value, to: new.value)
        let noise = self.noise(base, new)
        return Row(
            workload: base.workload,
            metric: base.metric,
            base: base,
            new: new,
            change: change,
            noise: noise,
            verdict: verdict(change, noise, better: base.better)
        )
    }

    private static func verdict(
        _ change: Double,
        _ noise: Double,
        better: Measurement.Direction
    ) -> Verdict {
        // Also for an infinite noise, and for a change that is not a number.
        guard abs(change) > noise else { return .unchanged }
        let isBetter = better == .lower ? change < 0 : change > 0
        return isBetter ? .improved : .regressed
    }

    private static func relativeChange(from base: Double, to new: Double) -> Double {
        if base == new { return 0 }
        return base == 0 ? (new > 0 ? .infinity : -.infinity) : (new - base) / abs(base)
    }

    private static func noise(_ base: Measurement, _ new: Measurement) -> Double {
        let spread = base.rounds.spread + new.rounds.spread
        guard base.unit.isTiming else { return max(countingFloor, spread) }
        return max(timingFloor, spread + drift(base.probeNanoseconds, new.probeNanoseconds))
    }

    private static func drift(_ base: Double?, _ new: Double?) -> Double {
        guard let base, let new, base > 0, new > 0 else { return 0 }
        return max(base, new) / min(base, new) - 1
    }
}

extension Unit {
    /// Whether the machine's speed is part of the figure.
    var isTiming: Bool {
        switch self {
        case .bytes, .count, .allocations, .share: false
        default: true
        }
    }
}
