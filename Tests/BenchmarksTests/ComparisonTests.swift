import Benchmarks
import CacheTestSupport
import Testing

@Suite struct ComparisonTests {
    private static func result(
        _ rounds: [Double],
        unit: Unit = .nanoseconds,
        better: Measurement.Direction = .lower,
        probe: Double? = nil,
        metric: String = "time"
    ) -> RunResult {
        RunResult(measurements: [
            Measurement(
                workload: "w",
                quantity: metric,
                unit: unit,
                better: better,
                rounds: Rounds(rounds),
                probeNanoseconds: probe
            )
        ])
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
        let base = Self.result([100], better: .higher)
        #expect(Self.verdict(base, Self.result([130], better: .higher)) == .improved)
        #expect(Self.verdict(base, Self.result([70], better: .higher)) == .regressed)
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

    @Test func rowsOnOneSideOnlyAreNamedAndNoRegression() {
        let comparison = Comparison(
            base: Self.result([1], metric: "old"),
            new: Self.result([1], metric: "new")
        )
        #expect(comparison.rows.map(\.verdict) == [.removed, .added])
        #expect(!comparison.hasRegression)
    }
}
