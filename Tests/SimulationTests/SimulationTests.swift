import CacheTestSupport
import Simulation
import Testing

/// Complete lives of a cache, one per seed; `make simulate` runs many more of them.
@Suite struct SimulationTests {
    /// A failure prints the command that repeats it.
    @Test(arguments: 0..<8)
    func s24NoRequestIsLostInSeededSchedules(part: Int) async {
        let failures = await PlainThread.run {
            (0..<40).map { Simulation(seed: UInt64(part * 40 + $0)).run() }
                .filter { !$0.problems.isEmpty }
        }
        for failure in failures { Issue.record("\(failure.replay)") }
    }

    /// Regressions: a late leader ended its successor's flight; a flight kept the key of a variant.
    @Test(arguments: [326_271, 398_978] as [UInt64])
    func seedsOfPastFailuresPass(seed: UInt64) async {
        let verdict = await PlainThread.run { Simulation(seed: seed).run() }
        #expect(verdict.problems.isEmpty, "\(verdict.replay)")
    }

    @Test(arguments: 0..<8)
    func longLivesAnswerEveryRequestRightly(part: Int) async {
        let failures = await PlainThread.run {
            (0..<3).map { Simulation(seed: UInt64(part * 3 + $0), size: .long).run() }
                .filter { !$0.problems.isEmpty }
        }
        for failure in failures { Issue.record("\(failure.replay)") }
    }

    @Test(arguments: [3, 17, 99] as [UInt64])
    func sameSeedGivesTheSameRun(seed: UInt64) async {
        let traces = await PlainThread.run { (0..<3).map { _ in Simulation(seed: seed).run() } }
        #expect(Set(traces.map(\.trace)).count == 1)
        #expect(Set(traces.map(\.jobs)).count == 1)
    }

    @Test func simulationsAnswerRequestsAndDiffer() async {
        let verdicts = await PlainThread.run { (0..<50).map { Simulation(seed: $0).run() } }
        #expect(verdicts.map(\.answers).reduce(0, +) > 200)
        #expect(Set(verdicts.map(\.trace)).count == 50)
    }
}
