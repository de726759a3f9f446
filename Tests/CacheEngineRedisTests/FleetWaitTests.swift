import CacheEngine
import CacheTestSupport
import Platform
import RESP
import RedisTestSupport
import Testing

@testable import CacheEngineRedis

/// Purges that wait for the fleet, over a real redis-server.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(10)),
    .serialized
)
struct FleetWaitTests {
    private static let reports = "ce1:test:{log}:m"

    private func machines(_ urls: [String], _ origin: any Origin) async throws -> [Machine] {
        var machines: [Machine] = []
        for url in urls { machines.append(try await Machine(url, origin)) }
        for machine in machines { #expect(await machine.isLinked()) }
        return machines
    }

    /// Waits until that many machines report.
    private func areKnown(_ count: Int64, to redis: RedisProcess) async -> Bool {
        await eventually { (try? await redis.command("HLEN", Self.reports).integer) == count }
    }

    /// One machine hears of purges 100 ms late: a purge that waits ends after it has applied it.
    @Test func purgeThatWaitsIsAppliedEverywhere() async throws {
        let redis = try await RedisProcess()
        let late = try Relay(to: redis.port)
        let origin = VersionedOrigin()
        let machines = try await machines([redis.url, redis.url, late.url], origin)
        #expect(await areKnown(3, to: redis))
        late.slow(Relay.Pace(milliseconds: 100))
        var (old, milliseconds) = (0, UInt64(0))
        for round in 0..<10 {
            let path = "/\(round)"
            for machine in machines { _ = try await machine.version(path) }
            origin.change(path)
            let started = monotonicNanoseconds()
            let receipt = try #require(
                try await machines[round % 2].purge(
                    round < 5
                        ? .request(CacheRequest(url: Machine.host + path)) : .tag("tag\(round)"),
                    waitingFor: .fleet
                )
            )
            milliseconds = max(milliseconds, (monotonicNanoseconds() - started) / 1_000_000)
            #expect(receipt.reach == FleetReach(machines: 3, applied: 3))
            for machine in machines where try await machine.version(path) != 1 { old += 1 }
        }
        print("slowest of 10 purges that wait for a machine 100 ms away: \(milliseconds) ms")
        #expect(old == 0)
        #expect(milliseconds >= 100)
        for machine in machines { await machine.cache.shutDown() }
    }

    /// A machine that is cut off is counted as long as it may be alive.
    @Test func machineThatIsCutOffIsMissing() async throws {
        let redis = try await RedisProcess()
        let relay = try Relay(to: redis.port)
        let machines = try await machines([redis.url, redis.url, relay.url], VersionedOrigin())
        #expect(await areKnown(3, to: redis))
        relay.cut()
        let started = monotonicNanoseconds()
        let receipt = try #require(try await machines[0].purge(.tag("t"), waitingFor: .fleet))
        let milliseconds = (monotonicNanoseconds() - started) / 1_000_000
        #expect(receipt.reach == FleetReach(machines: 3, applied: 2))
        #expect(receipt.reach?.isComplete == false && receipt.isReplicated)
        #expect(milliseconds >= 4_500)
        for machine in machines { await machine.cache.shutDown() }
    }

    @Test func machineThatEndsIsNotWaitedFor() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let stays = try await machines([redis.url], origin)[0]
        // Each one ends while its first reports are under way.
        for _ in 0..<FleetRounds.scaled(20, to: 100) {
            let ends = try await machines([redis.url], origin)[0]
            #expect(await areKnown(2, to: redis))
            await ends.cache.shutDown()
            #expect(await areKnown(1, to: redis))
        }
        let receipt = try #require(try await stays.purge(.tag("t"), waitingFor: .fleet))
        #expect(receipt.reach == FleetReach(machines: 1, applied: 1))
        await stays.cache.shutDown()
        #expect(await areKnown(0, to: redis))
    }

    /// Reports of machines that were killed do not stay for ever.
    @Test func reportsOfTheDeadAreRemoved() async throws {
        let redis = try await RedisProcess()
        let first = try await machines([redis.url], VersionedOrigin())
        #expect(await areKnown(1, to: redis))
        let log = Bookmark.hex(FleetPurge.ID.random().bytes)
        try await redis.command("HSET", Self.reports, "dead", "\(log) 1-1 1000")
        let second = try await machines([redis.url], VersionedOrigin())
        #expect(await eventually { await isForgotten("dead", by: redis) })
        #expect(await areKnown(2, to: redis))
        for machine in first + second { await machine.cache.shutDown() }
    }

    /// A new log has no reports of machines that live: a purge does not say that all have applied it.
    @Test func newLogMakesTheMachinesUnknown() async throws {
        let redis = try await RedisProcess()
        let machines = try await machines([redis.url], VersionedOrigin())
        #expect(await areKnown(1, to: redis))
        try await redis.command("FLUSHALL")
        #expect(await eventually { await machines[0].counts.allMarkedStale > 0 })
        let receipt = try #require(try await machines[0].purge(.tag("t"), waitingFor: .fleet))
        #expect(receipt.reach == nil)
        await machines[0].cache.shutDown()
    }

    private func isForgotten(_ name: String, by redis: RedisProcess) async -> Bool {
        (try? await redis.command("HEXISTS", Self.reports, name).integer) == 0
    }
}
