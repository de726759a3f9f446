import CacheEngine
import Platform
import RESP
import RedisClient

extension Workload {
    /// Look-ups of what another machine has stored, all by one machine with an empty memory.
    static let fleetSharedHit = Workload(
        name: "fleet-shared-hit",
        question: "entries of another machine, read from Redis by many callers of one machine"
    ) { plan in
        let keys = plan.sized(smoke: 300, quick: 6_000, full: 30_000)
        let fixture = SharedLater {
            try await FleetFixture(plan, keyCount: keys, isPatient: plan.isPatient)
        }
        return [64, 256].map { SharedHitCase(fixture, callers: $0) }
    }
}

private final class SharedHitCase: WorkloadCase {
    private let shared: SharedLater<FleetFixture>
    private let callers: Int
    private var records: [String] = []
    private var roundNumber = 0

    init(_ shared: SharedLater<FleetFixture>, callers: Int) {
        self.shared = shared
        self.callers = callers
    }

    var parameters: [Measurement.Parameter] { [.init("callers", callers), .init("size", "4 KiB")] }

    func prepare() async throws { records = try await shared.get().server.recordNames() }

    func round() async throws -> [Sample] {
        let fixture = try await shared.get()
        let hits: Crowd
        let reads: Crowd
        // The order alternates from round to round.
        if roundNumber % 2 == 0 {
            hits = try await sharedHits(fixture)
            reads = try await plainReads(fixture.server)
        } else {
            reads = try await plainReads(fixture.server)
            hits = try await sharedHits(fixture)
        }
        roundNumber += 1
        var sample = Sample.higherIsBetter(
            "shared_hits",
            hits.perSecond,
            .operationsPerSecond
        )
        sample.histogram = hits.histogram
        sample.reference = .init(peer: "GET", value: reads.perSecond)
        return [
            sample,
            .time("processor_time", hits.processorNanoseconds / Double(hits.count)),
            .allocations(hits.allocations, operations: hits.count),
            .lostLookUps(1 - hits.successShare),
        ]
    }

    /// Looks up all entries on a machine whose memory is empty.
    private func sharedHits(_ fixture: FleetFixture) async throws -> Crowd {
        let machine = try await fixture.machine()
        let hits = try await Crowd.time(fixture.keyCount, callers: callers) {
            try await machine.isSharedHit($0)
        }
        await machine.cache.shutDown()
        return hits
    }

    /// Reads the same records with the client of Redis alone.
    private func plainReads(_ server: RedisServer) async throws -> Crowd {
        let client = try server.client()
        let records = records
        let reads = try await Crowd.time(records.count, callers: callers) { number in
            let reply = try? await client.send(RESPCommand("GET", key: records[number]))
            return reply?.bytes != nil
        }
        await client.shutDown()
        return reads
    }

    func finish() async throws {
        await shared.made?.finish()
        shared.release()
    }
}

/// The work of many callers, each of which does one operation after the other.
struct Crowd {
    var count: Int
    /// The operations that did what they are for.
    var successes: Int
    var nanoseconds: UInt64
    var processorNanoseconds: Double
    var allocations: UInt64
    var histogram: Histogram

    /// The successes of a second.
    var perSecond: Double { Double(successes) * 1e9 / Double(max(1, nanoseconds)) }
    var successShare: Double { Double(successes) / Double(max(1, count)) }

    private struct Part {
        var times: [UInt64] = []
        var successes = 0
    }

    static func time(
        _ count: Int,
        callers: Int,
        _ work: @escaping @Sendable (Int) async throws -> Bool
    ) async throws -> Crowd {
        let allocations = Allocations.ofAllThreads
        let processor = Stopwatch.processNanoseconds
        let start = monotonicNanoseconds()
        let parts = try await withThrowingTaskGroup(of: Part.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    var part = Part()
                    part.times.reserveCapacity(count / callers + 1)
                    for number in stride(from: caller, to: count, by: callers) {
                        let before = monotonicNanoseconds()
                        if try await work(number) { part.successes += 1 }
                        part.times.append(monotonicNanoseconds() - before)
                    }
                    return part
                }
            }
            var parts: [Part] = []
            for try await part in group { parts.append(part) }
            return parts
        }
        let nanoseconds = monotonicNanoseconds() - start
        var crowd = Crowd(
            count: count,
            successes: parts.reduce(0) { $0 + $1.successes },
            nanoseconds: nanoseconds,
            processorNanoseconds: Double(Stopwatch.processNanoseconds - processor),
            allocations: Allocations.ofAllThreads &- allocations,
            histogram: Histogram()
        )
        for part in parts { for time in part.times { crowd.histogram.record(time) } }
        return crowd
    }
}
