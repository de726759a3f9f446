import Benchmarks
import Testing

/// The promises in perf/thresholds.json, kept.
@Suite struct ThresholdTests {
    /// Where the file lies, seen from this one.
    static let path: String = {
        let parts = #filePath.split(separator: "/").dropLast(3)
        return "/" + parts.joined(separator: "/") + "/perf/thresholds.json"
    }()

    @Test(.enabled(if: Allocations.areCounted, "a sanitizer replaces malloc itself"))
    func noWorkloadAllocatesMoreThanItMay() async throws {
        let thresholds = try Thresholds(parsing: try TextFile.read(Self.path))
        let names = thresholds.allocationsMax.map(\.workload)
        let workloads = try WorkloadCatalogue.workloads(named: names)
        let found = try await SuiteRunner(plan: WorkloadPlan(scale: .smoke)).run(workloads)
        #expect(thresholds.violations(in: found) == [])
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

/// Every workload runs, at its smallest.
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
