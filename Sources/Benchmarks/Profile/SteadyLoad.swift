import Platform

/// A workload repeated until the time is up, for a profiler that observes from outside.
package struct SteadyLoad {
    package let workload: Workload
    package let plan: WorkloadPlan
    package let seconds: Double

    package init(workload: Workload, plan: WorkloadPlan, seconds: Double) {
        self.workload = workload
        self.plan = plan
        self.seconds = seconds
    }

    /// The number of rounds and the figures of a load.
    package struct Outcome {
        package let rounds: Int
        package let measurements: [Measurement]

        package var text: String {
            let figures = measurements.filter { $0.quantity != "rounds" }
                .map { "\($0.metric): \($0.unit.readable($0.value))" }
            return (["\(rounds) rounds"] + figures).joined(separator: "\n")
        }
    }

    /// Runs every case in turn, for at least one round each.
    ///
    /// `progress` is called at the start and when another hundredth of the time has passed.
    package func run(progress: (_ percent: Int) -> Void = { _ in }) async throws -> Outcome {
        let cases = try workload.cases(plan)
        var tallies: [Tally] = []
        var rounds = 0
        var percent = 0
        progress(percent)
        for one in cases {
            try await one.prepare()
            tallies.append(Tally(workload: workload.name, parameters: one.parameters))
        }
        let start = monotonicNanoseconds()
        let length = max(1, UInt64(seconds * 1e9))
        var elapsed: UInt64 = 0
        repeat {
            for index in cases.indices {
                let samples = try await cases[index].round()
                try tallies[index].add(samples)
            }
            rounds += 1
            elapsed = monotonicNanoseconds() - start
            let reached = Int(min(100, elapsed * 100 / length))
            guard reached > percent else { continue }
            percent = reached
            progress(percent)
        } while elapsed < length
        for one in cases { try await one.finish() }
        return Outcome(
            rounds: rounds,
            measurements: tallies.flatMap { $0.measurements(probe: nil) }
        )
    }
}
