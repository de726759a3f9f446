import Benchmarks
import Testing

/// The comparison of fleets runs over a real redis-server.
@Suite(
    .enabled(
        if: Subprocess.firstLine(of: ["redis-server", "--version"]) != nil,
        "These tests need redis-server. Please run: perf/setup tests"
    ),
    .timeLimit(.minutes(5)),
    .serialized
)
struct FleetWorkloadTests {
    private static func run(_ name: String) async throws -> [Measurement] {
        let workloads = try WorkloadCatalogue.workloads(named: [name])
        return try await SuiteRunner(plan: WorkloadPlan(scale: .smoke)).run(workloads)
    }

    @Test func sharedHitsAreCountedBesidePlainReads() async throws {
        let rows = try await Self.run("fleet-shared-hit").filter { $0.quantity == "shared_hits" }
        #expect(rows.map { $0.parameter("callers") } == ["64", "256"])
        #expect(rows.allSatisfy { $0.value > 0 && $0.ratio?.peer == "GET" })
    }

    @Test func missIsTimedWithEachKindOfFleet() async throws {
        let rows = try await Self.run("fleet-latency")
        let misses = rows.filter { $0.quantity == "time_per_miss" }
        #expect(misses.map { $0.parameter("fleet") } == ["off", "log", "store"])
        #expect(rows.contains { $0.quantity == "time_per_shared_hit" && $0.value > 0 })
        #expect(rows.contains { $0.quantity == "lost_look_ups" && $0.value <= 0.1 })
    }

    /// Without a store each machine fetches for itself, with it one machine does.
    @Test func requestsOfAColdFleetAreCounted() async throws {
        let rows = try await Self.run("fleet-cold")
            .filter { $0.quantity == "origin_requests_per_object" }
        #expect(rows.map { $0.parameter("fleet") } == ["off", "log", "store"])
        #expect(rows[0].value > 1 && rows[0].value == rows[1].value)
        #expect(rows[2].value >= 1 && rows[2].value < rows[0].value)
    }

    /// Each target of the comparison has a workload that gives its figure.
    @Test func everyTargetHasAWorkload() {
        let names = Set(WorkloadCatalogue.fleet.map(\.name))
        let targets = Target.all.filter { $0.comparison == "fleet" }
        #expect(Set(targets.map(\.workload)) == names)
        let all = (WorkloadCatalogue.all + WorkloadCatalogue.fleet).map(\.name)
        #expect(Set(all).count == all.count)
    }
}
