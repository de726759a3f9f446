import Benchmarks
import CacheTestSupport
import Testing

@Suite struct ComparisonTests {
    private static func result(
        _ rounds: [Double],
        unit: Unit = .nanoseconds,
        better: Measurement.Direction = .lower,
        probe: Double? = nil,
        metric: String = "time",
        machine: MachineDescription = .current,
        ratio: Double? = nil
    ) -> RunResult {
        RunResult(
            machine: machine,
            measurements: [
                Measurement(
                    workload: "w",
                    quantity: metric,
                    unit: unit,
                    better: better,
                    rounds: Rounds(rounds),
                    ratio: ratio.map { .init(to: "peer", $0) },
                    probeNanoseconds: probe
                )
            ]
        )
    }

    private static func verdict(_ base: RunResult, _ new: RunResult) -> Comparison.Verdict? {
        Comparison(base: base, new: new).rows.first?.verdict
    }

    @Test func aRunComparedWithItselfIsUnchanged() {
        let run = Self.result([50, 52, 48])
        let comparison = Comparison(base: run, new: run)
        #expect(comparison.rows.map(\.verdict) == [.unchanged])
        #expect(comparison.text.contains("1 rows: no change"))
    }

    @Test(arguments: UInt64(0)..<64)
    func twoRunsOfTheSameNoisyThingAreUnchanged(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        func noisy() -> [Double] {
            (0..<5).map { _ in Double.random(in: 90...110, using: &random) }
        }
        #expect(Self.verdict(Self.result(noisy()), Self.result(noisy())) == .unchanged)
    }

    @Test func aSlowdownBeyondTheNoiseIsARegression() {
        let base = Self.result([100, 101, 99])
        let comparison = Comparison(base: base, new: Self.result([130, 131, 129]))
        #expect(comparison.hasRegression)
        #expect(Self.verdict(base, Self.result([70, 71, 69])) == .improved)
    }

    @Test func theDirectionDecidesWhatIsWorse() {
        let base = Self.result([100, 100], better: .higher)
        #expect(Self.verdict(base, Self.result([130, 130], better: .higher)) == .improved)
        #expect(Self.verdict(base, Self.result([70, 70], better: .higher)) == .regressed)
    }

    @Test func aSlowerMachineIsNotASlowerEngine() {
        let base = Self.result([100, 100, 100], probe: 1_000)
        #expect(Self.verdict(base, Self.result([130, 130, 130], probe: 1_300)) == .unchanged)
        #expect(Self.verdict(base, Self.result([130, 130, 130], probe: 1_010)) == .regressed)
    }

    @Test func oneAllocationMoreIsARegression() {
        let none = Self.result([0, 0], unit: .allocations)
        #expect(Self.verdict(none, none) == .unchanged)
        #expect(Self.verdict(none, Self.result([1, 1], unit: .allocations)) == .regressed)
        let three = Self.result([3, 3], unit: .allocations)
        #expect(Self.verdict(three, Self.result([4, 4], unit: .allocations)) == .regressed)
    }

    /// The work of a round itself is divided by as many operations as the round has time for.
    @Test func fewerOperationsAreNoFurtherAllocations() {
        let base = Self.result([7.5e-5, 7.5e-5], unit: .allocations)
        #expect(
            Self.verdict(base, Self.result([9.8e-5, 9.8e-5], unit: .allocations)) == .unchanged
        )
        #expect(Self.verdict(base, Self.result([0.06, 0.06], unit: .allocations)) == .regressed)
    }

    @Test func medianOfZeroHasNoise() {
        let few = Self.result([0, 0, 0, 0, 1], unit: .allocations)
        #expect(
            Self.verdict(few, Self.result([26, 26, 26, 26, 26], unit: .allocations)) == .regressed
        )
        let base = Self.result([0, 0, 0, 500, 900])
        #expect(Self.verdict(base, Self.result([50_000, 50_000, 50_000])) == .regressed)
        #expect(Self.verdict(base, Self.result([800, 850, 820])) == .unchanged)
        #expect(Self.verdict(Self.result([50_000, 50_000]), base) == .improved)
        #expect(Self.verdict(base, base) == .unchanged)
    }

    /// One round has no spread, so nothing tells its noise.
    @Test func timeOfOneRoundDecidesNothing() {
        let one = Self.result([100])
        #expect(Self.verdict(one, Self.result([120, 120])) == .undecided)
        #expect(Self.verdict(Self.result([120, 120]), one) == .undecided)
        #expect(Self.verdict(one, Self.result([101])) == .unchanged)
        #expect(!Comparison(base: one, new: Self.result([500])).hasRegression)
        let count = Self.result([100], unit: .count)
        #expect(Self.verdict(count, Self.result([120], unit: .count)) == .regressed)
    }

    @Test func timesOfAnotherMachineAreJudgedByTheirRatio() {
        var other = MachineDescription.current
        other.kernel += "-other"
        func new(_ time: Double, _ ratio: Double?, _ unit: Unit = .nanoseconds) -> RunResult {
            Self.result([time, time], unit: unit, machine: other, ratio: ratio)
        }
        let base = Self.result([100, 100], ratio: 0.9)
        #expect(Self.verdict(base, new(200, 0.9)) == .unchanged)
        #expect(Self.verdict(base, new(100, 1.2)) == .regressed)
        #expect(Self.verdict(Self.result([100, 100]), new(200, nil)) == .undecided)
        #expect(Self.verdict(Self.result([3, 3], unit: .count), new(4, nil, .count)) == .regressed)
    }

    @Test func rowsOnOneSideOnlyAreNamedAndNoRegression() {
        let comparison = Comparison(
            base: Self.result([1], metric: "old", ratio: 2),
            new: Self.result([1], metric: "new")
        )
        #expect(comparison.rows.map(\.verdict) == [.removed, .added])
        #expect(!comparison.hasRegression && !comparison.hasCommonRow)
        #expect(comparison.lost.map(\.name) == ["w old against peer"])
    }

    private static func sweep(_ rates: Int...) -> RunResult {
        RunResult(
            measurements: rates.map { rate in
                Measurement(
                    workload: "open-loop",
                    quantity: "latency",
                    parameters: [.init("rate", rate)],
                    unit: .nanoseconds,
                    better: .lower,
                    rounds: Rounds([1, 1])
                )
            }
        )
    }

    /// Rates beyond the limit of the machine have no rows.
    @Test func sweepMayEndEarlier() {
        let base = Self.sweep(1, 2, 3)
        #expect(Comparison(base: base, new: Self.sweep(1, 2)).lost.isEmpty)
        #expect(Comparison(base: base, new: Self.result([1])).lost.count == 3)
    }
}
