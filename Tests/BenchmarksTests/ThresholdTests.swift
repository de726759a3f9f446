import Benchmarks
import Testing

/// Tests of the code that checks perf/thresholds.json.
///
/// `make thresholds` applies it to an optimised build: without optimisation, closures and generics
/// make extra allocations.
@Suite struct ThresholdTests {
    /// The path of the file, relative to this one.
    static let path: String = {
        let parts = #filePath.split(separator: "/").dropLast(3)
        return "/" + parts.joined(separator: "/") + "/perf/thresholds.json"
    }()

    @Test func everyThresholdNamesAWorkload() throws {
        let thresholds = try Thresholds(parsing: try TextFile.read(Self.path))
        let names = thresholds.allocationsMax.map(\.workload)
        #expect(names.contains("memory-hit"))
        #expect(try WorkloadCatalogue.workloads(named: names).count == names.count)
    }

    @Test func oneAllocationTooManyIsAViolation() throws {
        let text = #"{"allocations_per_operation": {"w": 2, "not-run": 1}}"#
        let thresholds = try Thresholds(parsing: text)
        func row(_ value: Double) -> Measurement {
            Measurement(
                workload: "w",
                quantity: "allocations",
                unit: .allocations,
                better: .lower,
                rounds: Rounds([value])
            )
        }
        #expect(thresholds.violations(in: [row(3)]).count == 2)
        #expect(thresholds.violations(in: [row(2)]).count == 1)
    }

    @Test(arguments: ["{}", "[]", #"{"allocations_per_operation": {"w": -1}}"#])
    func aFileWithoutLimitsIsRefused(text: String) {
        #expect(throws: (any Error).self) { try Thresholds(parsing: text) }
    }
}

/// Every workload runs at its smallest scale.
@Suite struct WorkloadSmokeTests {
    static let names = WorkloadCatalogue.all.map(\.name)

    @Test(arguments: names)
    func theWorkloadRunsAndChecksItsOwnWork(name: String) async throws {
        let workloads = try WorkloadCatalogue.workloads(named: [name])
        let found = try await SuiteRunner(plan: WorkloadPlan(scale: .smoke)).run(workloads)
        #expect(!found.isEmpty)
        for one in found {
            #expect(one.workload == name)
            #expect(one.value.isFinite && one.value >= 0, "\(one.metric) is \(one.value)")
        }
        #expect(Set(found.map { "\($0.metric) \($0.ratio?.peer ?? "")" }).count == found.count)
    }
}
