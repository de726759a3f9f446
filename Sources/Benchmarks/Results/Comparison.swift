/// A row-by-row comparison of two runs, with verdicts that take the noise into account.
///
/// A row has changed if its medians differ by more than the noise explains. The noise is the sum of
/// the distances between the fastest and the slowest round of both runs and of the machine's drift
/// according to the speed probe. It is at least a floor that covers causes that no round shows,
/// such as memory layout or a neighbour on the host.
///
/// A time whose noise is unknown is shown and never decides: one of a single round, or one of
/// another machine. On another machine a row with a peer is judged by its ratio to the peer.
package struct Comparison: Sendable {
    /// The verdict on one row.
    package enum Verdict: String, Sendable {
        case unchanged = "no change"
        case improved
        case regressed
        /// The values differ, and the noise is unknown.
        case undecided
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

        /// The row's workload, metric and peer.
        package var name: String {
            let peer = (base ?? new)?.ratio.map { " against \($0.peer)" } ?? ""
            return "\(workload) \(metric)\(peer)"
        }
    }

    /// Two runs of one program differ by this share even if the rounds of each agree.
    package static let timingFloor = 0.08
    /// Counts and sizes hardly vary, so a change of one in a hundred is significant.
    package static let countingFloor = 0.01
    /// Work that is done once in a round, divided by operations whose number depends on the time.
    package static let allocationsFloor = 0.05

    package let rows: [Row]

    package init(base: RunResult, new: RunResult) {
        var rows: [Row] = []
        let newByKey = Dictionary(
            new.measurements.map { (Key($0), $0) },
            uniquingKeysWith: { first, _ in first }
        )
        let baseKeys = Set(base.measurements.map(Key.init))
        let isOneMachine = base.machine == new.machine
        for measurement in base.measurements {
            let other = newByKey[Key(measurement)]
            rows.append(Self.row(base: measurement, new: other, isOneMachine: isOneMachine))
        }
        for measurement in new.measurements where !baseKeys.contains(Key(measurement)) {
            rows.append(Self.row(base: nil, new: measurement, isOneMachine: isOneMachine))
        }
        self.rows = rows
    }

    package var hasRegression: Bool { rows.contains { $0.verdict == .regressed } }

    package var hasCommonRow: Bool { rows.contains { $0.base != nil && $0.new != nil } }

    /// The rows of the base that the new run should have and lacks.
    ///
    /// A sweep of rates ends where the machine is at its limit, which differs from run to run.
    package var lost: [Row] {
        let sweep = "open-loop"
        let hasSweep = rows.contains { $0.workload == sweep && $0.new != nil }
        return rows.filter { row in
            row.verdict == .removed && !(hasSweep && row.workload == sweep)
        }
    }

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

    private static func row(base: Measurement?, new: Measurement?, isOneMachine: Bool) -> Row {
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
        let isTimeOfOther = base.unit.isTiming && !isOneMachine
        var change = relativeChange(from: base.value, to: new.value)
        if isTimeOfOther, let ratio = base.ratio, let other = new.ratio {
            change = relativeChange(from: ratio.value, to: other.value)
        }
        let noise = self.noise(base, new, isOneMachine: isOneMachine)
        let isSingle = min(base.rounds.values.count, new.rounds.values.count) < 2
        let hasNoRatio = base.ratio == nil || new.ratio == nil
        let isUnknown = base.unit.isTiming && isSingle || isTimeOfOther && hasNoRatio
        return Row(
            workload: base.workload,
            metric: base.metric,
            base: base,
            new: new,
            change: change,
            noise: noise,
            verdict: verdict(change, noise, better: base.better, isNoiseKnown: !isUnknown)
        )
    }

    private static func verdict(
        _ change: Double,
        _ noise: Double,
        better: Measurement.Direction,
        isNoiseKnown: Bool
    ) -> Verdict {
        // Also covers infinite noise and a change that is not a number.
        guard abs(change) > noise else { return .unchanged }
        guard isNoiseKnown else { return .undecided }
        let isBetter = better == .lower ? change < 0 : change > 0
        return isBetter ? .improved : .regressed
    }

    private static func relativeChange(from base: Double, to new: Double) -> Double {
        if base == new { return 0 }
        return base == 0 ? (new > 0 ? .infinity : -.infinity) : (new - base) / abs(base)
    }

    private static func noise(
        _ base: Measurement,
        _ new: Measurement,
        isOneMachine: Bool
    ) -> Double {
        var noise = spread(base, new)
        var floor = countingFloor
        if base.unit.isTiming {
            // A ratio knows no drift: the peer drifts with us.
            if isOneMachine { noise += drift(base.probeNanoseconds, new.probeNanoseconds) }
            floor = timingFloor
        } else if base.unit == .allocations {
            let difference = abs(new.value - base.value)
            if difference < allocationsFloor { return .infinity }
        }
        return max(floor, noise)
    }

    /// The distances between the fastest and the slowest rounds of both runs, as a share.
    ///
    /// A median of 0 has no shares. Then the distances themselves are compared with the difference.
    private static func spread(_ base: Measurement, _ new: Measurement) -> Double {
        if base.value != 0, new.value != 0 { return base.rounds.spread + new.rounds.spread }
        let distance = base.rounds.distance + new.rounds.distance
        if base.value != 0 { return distance / abs(base.value) }
        return distance < abs(new.value) ? 0 : .infinity
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
