import CacheEngine

/// A fresh HTTP hit compared with URLCache: a request in, a response with its fields out.
enum HTTPVersus {
    static func comparison(_ launches: [PeerProgram.Launch]) throws -> Workload {
        let launches = launches.filter { $0.name == "urlcache" }
        return Workload(name: "http-hit", question: "a fresh HTTP hit beside URLCache") { plan in
            [1_024].map { HTTPVersusCase(plan, launches, keyCount: $0) }
        }
    }
}

private final class HTTPVersusCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let launches: [PeerProgram.Launch]
    private let keyCount: Int
    private var fixture: HTTPFixture?
    private var peers: [PeerProgram] = []
    private var roundNumber = 0

    init(_ plan: WorkloadPlan, _ launches: [PeerProgram.Launch], keyCount: Int) {
        self.plan = plan
        self.launches = launches
        self.keyCount = keyCount
    }

    var parameters: [Measurement.Parameter] {
        [.init("keys", keyCount), .init("threads", 1), .init("call", "respond")]
    }

    func prepare() async throws {
        fixture = try await HTTPFixture(keyCount: keyCount)
        peers = try launches.map { try PeerProgram($0, arguments: [$0.name]) }
        for peer in peers { _ = try time(peer, milliseconds: 200) }
        _ = try await ours(nanoseconds: plan.roundNanoseconds)
    }

    func round() async throws -> [Sample] {
        var ours = TimedLoop.Outcome()
        var theirs: [(name: String, nanoseconds: Double)] = []
        for side in RoundOrder.sides(1 + peers.count, round: roundNumber) {
            if side == 0 {
                ours = try await self.ours(nanoseconds: plan.roundNanoseconds)
            } else {
                theirs.append(try time(peers[side - 1]))
            }
        }
        roundNumber += 1
        try ours.requireAllCorrect("http-hit")
        let time = ours.nanosecondsPerOperation
        let samples = theirs.map { name, nanoseconds in
            Sample.time("time_per_hit", time, against: name, nanoseconds)
        }
        let allocated = Sample.allocations(ours.allocations, operations: ours.operations)
        return (samples.isEmpty ? [.time("time_per_hit", time)] : samples) + [allocated]
    }

    func finish() async throws {
        for peer in peers { peer.finish() }
        peers = []
        await fixture?.cache.shutDown()
        fixture = nil
    }

    private func ours(nanoseconds: UInt64) async throws -> TimedLoop.Outcome {
        guard let fixture else { throw WorkloadFailure.notPrepared }
        return try await TaskTeam.run(tasks: 1, nanoseconds: nanoseconds) {
            try await fixture.hits($0, from: $1, count: $2)
        }
    }

    private func time(
        _ peer: PeerProgram,
        milliseconds: UInt64? = nil
    ) throws -> (name: String, nanoseconds: Double) {
        let milliseconds = milliseconds ?? max(5, plan.roundNanoseconds / 1_000_000)
        let command =
            "http-hit keys=\(keyCount) size=\(HTTPFixture.bodySizeBytes) threads=1 "
            + "milliseconds=\(milliseconds)"
        return (peer.name, try peer.perform(command).nanosecondsPerOperation)
    }
}
