/// A row-by-row comparison of two runs, with verdicts that take the noise into account.
///
/// A row has changed if its medians differ by more than the noise explains. The noise is the sum of
/// the distances between the fastest and the slowest round of both runs and of the machine's drift
/// according to the speed probe. It is at least a floor that covers causes that no round shows,
/// such as memory layout or a neighbour on the host.
package struct Comparison: Sendable {
    /// The verdict on one row.
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
        /// The change as a share of the base value, positive for an increase.
        package let change: Double
        /// The largest change that the noise explains.
        package let noise: Double
        package let verdict: Verdict
    }

    /// Two runs of one program differ by this share even if the rounds of each agree.
    package static let timingFloor = 0.08
    /// Counts and sizes hardly vary, so a change of one in a hundred is significant.
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

    /// The properties that two rows of the same question share.
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
        // Also covers infinite noise and a change that is not a number.
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
    /// Whether the figure depends on the machine's speed.
    var isTiming: Bool {
        switch self {
        case .bytes, .count, .allocations, .share: false
        default: true
        }
    }
}
