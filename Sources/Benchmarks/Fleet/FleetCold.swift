import CacheEngine
import CacheTestSupport
import Platform

extension Workload {
    /// Three machines that have nothing stored, under one load.
    static let fleetCold = Workload(
        name: "fleet-cold",
        question: "three machines, 100,000 objects, cold: how often is the origin asked?",
        roundsMax: 1
    ) { plan in FleetMachine.Sharing.allCases.map { FleetColdCase(plan, $0) } }
}

private final class FleetColdCase: WorkloadCase {
    private static let objectCount = 100_000
    private static let exponent = 0.9
    private static let machineCount = 3
    private static let callersOfMachine = 8
    private static let originNanoseconds: UInt64 = 1_000_000

    private let plan: WorkloadPlan
    private let sharing: FleetMachine.Sharing
    private let requestCount: Int
    private var server: RedisServer?
    /// The objects in the order of the requests, the same for every kind of fleet.
    private var objects: [UInt32] = []

    init(_ plan: WorkloadPlan, _ sharing: FleetMachine.Sharing) {
        self.plan = plan
        self.sharing = sharing
        requestCount = plan.sized(smoke: 600, quick: 24_000, full: 300_000)
    }

    var parameters: [Measurement.Parameter] {
        [sharing.parameter, .init("machines", Self.machineCount), .init("requests", requestCount)]
    }

    func prepare() async throws {
        var random = SeededRandom(seed: 3)
        objects = ZipfSampler(count: Self.objectCount, exponent: Self.exponent)
            .scatteredSequence(requestCount, from: &random)
        server = try await RedisServer(plan, isPatient: plan.isPatient)
    }

    func round() async throws -> [Sample] {
        guard let server else { throw WorkloadFailure.notPrepared }
        try await server.empty()
        let origin = FleetOrigin(
            bodySizeBytes: HTTPFixture.bodySizeBytes,
            delayNanoseconds: Self.originNanoseconds
        )
        var machines: [FleetMachine] = []
        for _ in 0..<Self.machineCount {
            machines.append(try await FleetMachine(server, sharing, origin))
        }
        let (fleet, objects) = (machines, objects)
        let load = try await Crowd.time(
            requestCount,
            callers: Self.machineCount * Self.callersOfMachine
        ) { number in
            // Callers take turns, so each belongs to one machine.
            _ = try await fleet[number % Self.machineCount].request(Int(objects[number]))
            return true
        }
        var sharedHits = 0
        for machine in machines {
            sharedHits += await machine.counts.sharedHits
            await machine.cache.shutDown()
        }
        let distinct = Set(objects).count
        return [
            .lowerIsBetter("origin_requests", Double(origin.count), .count),
            .lowerIsBetter(
                "origin_requests_per_object",
                Double(origin.count) / Double(distinct),
                .share
            ),
            .higherIsBetter("shared_hits", Double(sharedHits), .count),
            .higherIsBetter("requests", load.perSecond, .operationsPerSecond),
        ]
    }

    func finish() async throws { server = nil }
}
