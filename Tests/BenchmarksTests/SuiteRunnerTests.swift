import Testing

@testable import Benchmarks

@Suite struct SuiteRunnerTests {
    /// A case that logs the calls of the runner.
    private final class ScriptedCase: WorkloadCase {
        let name: String
        let log: Log
        let values: [Double]
        let reference: Double?
        private var rounds = 0

        init(_ name: String, _ log: Log, values: [Double] = [1], reference: Double? = nil) {
            self.name = name
            self.log = log
            self.values = values
            self.reference = reference
        }

        var parameters: [Measurement.Parameter] { [.init("case", name)] }
        func prepare() async throws { log.lines.append("prepare \(name)") }
        func finish() async throws { log.lines.append("finish \(name)") }
        func round() async throws -> [Sample] {
            log.lines.append("round \(name)")
            defer { rounds += 1 }
            if values.isEmpty { throw WorkloadFailure("it went wrong") }
            var sample = Sample.lowerIsBetter("value", values[rounds % values.count], .count)
            sample.reference = reference.map { .init(peer: "peer", value: $0) }
            return [sample]
        }
    }

    /// `@unchecked Sendable`: one task at a time writes it.
    private final class Log: @unchecked Sendable {
        var lines: [String] = []
    }

    @Test func theRoundsOfTheCasesAlternate() async throws {
        let log = Log()
        let workload = Workload(name: "w", question: "?") { _ in
            [ScriptedCase("a", log), ScriptedCase("b", log)]
        }
        _ = try await SuiteRunner(plan: WorkloadPlan(scale: .smoke)).run([workload])
        #expect(
            log.lines == [
                "prepare a", "prepare b", "round a", "round b", "round a", "round b", "finish a",
                "finish b",
            ]
        )
    }

    @Test func theMedianOfTheRoundsIsTheValue() async throws {
        let workload = Workload(name: "w", question: "?") { _ in
            [ScriptedCase("a", Log(), values: [9, 1, 4, 2, 3])]
        }
        let found = try await SuiteRunner(plan: WorkloadPlan(scale: .quick)).run([workload])
        #expect(found.map(\.value) == [3])
        #expect(found.map(\.metric) == ["value case=a"])
        #expect(found[0].rounds.values.count == 5)
    }

    @Test func aFailureStillGivesBackWhatWasTaken() async {
        let log = Log()
        let workload = Workload(name: "w", question: "?") { _ in
            [ScriptedCase("a", log), ScriptedCase("b", log, values: [])]
        }
        await #expect(throws: WorkloadFailure.self) {
            try await SuiteRunner(plan: WorkloadPlan(scale: .smoke)).run([workload])
        }
        #expect(log.lines.suffix(2) == ["finish a", "finish b"])
    }

    @Test func pauseEndsTheSweepOfItsRoundAlone() {
        let sweep = RateSweep(lowestRate: 100)
        #expect(sweep.begins(100) && sweep.begins(200))
        sweep.ended(100, completedPerSecond: 79)
        #expect(sweep.begins(100) && sweep.begins(200))
        sweep.ended(200, completedPerSecond: 100)
        #expect(!sweep.begins(300))
        #expect(sweep.begins(100) && sweep.begins(300))
    }

    @Test func ratioWithoutAReferenceIsNotMeasured() async throws {
        let workload = Workload(name: "w", question: "?") { _ in
            [ScriptedCase("a", Log(), reference: 0), ScriptedCase("b", Log(), reference: 2)]
        }
        let found = try await SuiteRunner(plan: WorkloadPlan(scale: .smoke)).run([workload])
        #expect(found.map(\.ratio) == [nil, .init(to: "peer", 0.5)])
    }

    /// The percentiles of nothing are 0, which would meet every target.
    @Test func timeOfNoOperationIsNoFigure() throws {
        var tally = Tally(workload: "w", parameters: [])
        let nothing = Histogram()
        let empty = Sample.time("time", Double(nothing.percentile(0.5)), nothing)
        #expect(throws: WorkloadFailure("w: no operation was timed for time")) {
            try tally.add([empty])
        }
        var times = Histogram()
        times.record(7)
        try tally.add([.time("time", 7, times), .time("other", 1)])
        #expect(tally.measurements(probe: nil).map(\.quantity) == ["time", "other"])
    }

    @Test func allocationsThatNothingCountsAreNoFigure() throws {
        for (areCounted, quantities) in [(true, ["allocations", "value"]), (false, ["value"])] {
            var tally = Tally(workload: "w", parameters: [], countsAllocations: areCounted)
            try tally.add([.allocations(0, operations: 1), .lowerIsBetter("value", 1, .count)])
            #expect(tally.measurements(probe: nil).map(\.quantity) == quantities)
        }
    }

    @Test func aSteadyLoadRunsEveryCaseAtLeastOnce() async throws {
        let log = Log()
        let workload = Workload(name: "w", question: "?") { _ in
            [ScriptedCase("a", log), ScriptedCase("b", log)]
        }
        let load = SteadyLoad(workload: workload, plan: .init(scale: .smoke), seconds: 1e-9)
        var percents: [Int] = []
        let outcome = try await load.run { percents.append($0) }
        #expect(outcome.rounds == 1)
        #expect(log.lines.contains("round b"))
        #expect(percents == [0, 100])
    }

    @Test func everyNameIsFoundOnce() throws {
        let names = WorkloadCatalogue.all.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(try WorkloadCatalogue.workloads(named: names).map(\.name) == names)
        #expect(throws: UsageError.self) { try WorkloadCatalogue.workloads(named: ["no-such"]) }
    }
}
