/// Runs workloads and collects their results.
///
/// The rounds of a workload's cases alternate. A neighbour that is busy for a second then disturbs
/// one round of every case instead of every round of one case, and the spread of the rounds shows
/// it.
package struct SuiteRunner {
    package let plan: WorkloadPlan
    /// Called before each piece of work.
    package let progress: (Progress) -> Void

    /// The progress of a run.
    package struct Progress: Sendable {
        package let workload: String
        package let step: Int
        package let steps: Int
    }

    package init(plan: WorkloadPlan, progress: @escaping (Progress) -> Void = { _ in }) {
        self.plan = plan
        self.progress = progress
    }

    package func run(_ workloads: [Workload]) async throws -> [Measurement] {
        let probe = SpeedProbe()
        var measurements: [Measurement] = []
        for workload in workloads { measurements += try await run(workload, probe) }
        return measurements
    }

    private func run(_ workload: Workload, _ probe: SpeedProbe) async throws -> [Measurement] {
        let cases = try workload.cases(plan)
        let rounds = min(plan.rounds, workload.roundsMax)
        let steps = cases.count * (rounds + 1)
        var step = 0
        func advance() {
            progress(Progress(workload: workload.name, step: step, steps: steps))
            step += 1
        }
        var tallies: [Tally] = []
        var probes = Rounds()
        do {
            for one in cases {
                advance()
                try await one.prepare()
                tallies.append(Tally(workload: workload.name, parameters: one.parameters))
            }
            for _ in 0..<rounds {
                probes.append(probe.measure())
                for index in cases.indices {
                    advance()
                    let samples = try await cases[index].round()
                    try tallies[index].add(samples)
                }
            }
        } catch {
            // A failure of `finish` must not replace the first error.
            for one in cases { try? await one.finish() }
            throw error
        }
        for one in cases { try await one.finish() }
        return tallies.flatMap { $0.measurements(probe: probes.median) }
    }
}

/// The samples of one case, grouped by quantity in the order of their first appearance.
struct Tally {
    private struct Column {
        let first: Sample
        var rounds = Rounds()
        var ratios = Rounds()
        var histogram: Histogram?
    }

    let workload: String
    let parameters: [Measurement.Parameter]
    private let countsAllocations: Bool
    private var columns: [Column] = []

    init(
        workload: String,
        parameters: [Measurement.Parameter],
        countsAllocations: Bool = Allocations.areCounted
    ) {
        self.workload = workload
        self.parameters = parameters
        self.countsAllocations = countsAllocations
    }

    /// Adds the samples of a round; throws if one is of operations that were not timed.
    ///
    /// The percentiles of an empty histogram are 0, the best possible time.
    mutating func add(_ samples: [Sample]) throws {
        for sample in samples where countsAllocations || sample.unit != .allocations {
            try WorkloadFailure.require(
                sample.histogram?.count != 0,
                "\(workload): no operation was timed for \(sample.quantity)"
            )
            let index = columns.firstIndex {
                $0.first.quantity == sample.quantity && $0.first.parameters == sample.parameters
                    && $0.first.reference?.peer == sample.reference?.peer
            }
            if let index {
                Self.add(sample, to: &columns[index])
            } else {
                var column = Column(first: sample)
                Self.add(sample, to: &column)
                columns.append(column)
            }
        }
    }

    private static func add(_ sample: Sample, to column: inout Column) {
        column.rounds.append(sample.value)
        if let reference = sample.reference, reference.value > 0 {
            column.ratios.append(sample.value / reference.value)
        }
        guard let histogram = sample.histogram else { return }
        if column.histogram == nil {
            column.histogram = histogram
        } else {
            column.histogram?.merge(histogram)
        }
    }

    func measurements(probe: Double?) -> [Measurement] {
        columns.map { column in
            Measurement(
                workload: workload,
                quantity: column.first.quantity,
                parameters: parameters + column.first.parameters,
                unit: column.first.unit,
                better: column.first.better,
                rounds: column.rounds,
                percentiles: column.histogram?.percentiles,
                ratio: column.first.reference.flatMap {
                    // A reference of 0 gives no ratio.
                    column.ratios.values.isEmpty
                        ? nil : Measurement.Ratio(to: $0.peer, column.ratios.median)
                },
                probeNanoseconds: column.first.unit.isTiming ? probe : nil
            )
        }
    }
}
