import CacheEngine
import CacheTestSupport
import RESP
import RedisClient
import Testing

@testable import CacheEngineRedis
@testable import Simulation

/// The reports of one machine, in the order in which the log's server gets them.
@Suite struct FleetPresenceTests {
    private let server: LaneServer
    private let clock = TestClock()
    private let keys = LogKeys(namespace: "test")
    private let mark = Bookmark(incarnation: FleetPurge.ID(1), position: FleetPosition(1, 1))

    init() { server = LaneServer(clock) }

    private func presence() -> FleetPresence {
        let time = FleetTime(clock)
        time.note(serverMilliseconds: 1_700_000_000_000)
        return FleetPresence(
            server,
            FleetSurroundings(clock: clock),
            keys,
            at: LaneServer.address,
            time
        )
    }

    /// The machines that the server knows.
    private var known: Int {
        get async throws {
            let all = try await server.send(
                RESPCommand("HGETALL", key: keys.machines),
                within: nil,
                lane: .data
            )
            return (all.elements?.count ?? 0) / 2
        }
    }

    /// A log with one purge, which this machine has applied.
    private func markOfAPurge() throws -> Bookmark {
        server.append(1, to: keys)
        let reply = server.model.run(["HMGET", keys.meta, "inc", "last"].map { Array($0.utf8) })
        let parts = try #require(reply.elements)
        return Bookmark(
            incarnation: try #require(parts[0].bytes.flatMap { FleetPurge.ID($0) }),
            position: try #require(parts[1].text.flatMap { FleetPosition($0) })
        )
    }

    private func write(_ value: String) {
        _ = server.model.run(["HSET", keys.machines, "x", value].map { Array($0.utf8) })
    }

    /// The machines that a purge has reached; the clock passes while it waits for them.
    private func reach(of mark: Bookmark, _ presence: FleetPresence) async -> FleetReach? {
        let time = Task { [clock] in
            while !Task.isCancelled {
                if clock.sleeperCount > 0 { clock.advanceToNextSleeper(within: 1) }
                await Task.yield()
            }
        }
        defer { time.cancel() }
        return await presence.reach(of: mark.position)
    }

    @Test func farewellRemovesEveryReport() async throws {
        let presence = presence()
        await presence.announce(mark)
        #expect(try await known == 1)
        presence.report(mark, within: .seconds(1))
        await presence.withdraw()
        #expect(try await known == 0)
        presence.report(mark, within: .seconds(1))
        await presence.announce(mark)
        #expect(try await known == 0)
    }

    /// Something else wrote it, or a machine of a later version that was killed.
    @Test(arguments: ["", "v2 1 2 3"])
    func fieldThatIsNoReportKeepsPurgesWaitingForTenSeconds(value: String) async throws {
        let presence = presence()
        let mark = try markOfAPurge()
        write(value)
        await presence.removeGone()
        #expect(try await known == 1)
        clock.advance(seconds: 11)
        await presence.announce(mark)
        #expect(await reach(of: mark, presence) == FleetReach(machines: 1, applied: 1))
        #expect(clock.monotonicNanoseconds == 11_000_000_000)
        await presence.removeGone()
        #expect(try await known == 1)
    }

    /// A machine of a later version is alive, and may not have applied the purge.
    @Test func fieldThatIsRewrittenIsCounted() async throws {
        let presence = presence()
        let mark = try markOfAPurge()
        for second in 0..<15 {
            write("v2 \(second)")
            await presence.removeGone()
            clock.advance(seconds: 1)
        }
        await presence.announce(mark)
        #expect(await reach(of: mark, presence) == FleetReach(machines: 2, applied: 1))
        #expect(try await known == 2)
    }

    /// A removal on another connection would overtake it.
    @Test func reportUnderWayComesBeforeTheFarewell() async throws {
        let presence = presence()
        server.hold(.blocking) { $0[0] == Array("HSET".utf8) }
        presence.report(mark, within: .seconds(1))
        let farewell = Task { await presence.withdraw() }
        // Either it waits for the report, or it has removed it.
        #expect(await eventually { clock.sleeperCount == 1 || server.names.contains("HDEL") })
        server.release(.blocking)
        await farewell.value
        #expect(try await known == 0)
    }

    /// A server that does not answer keeps no machine from ending.
    @Test func farewellWaitsForAReportForHalfASecond() async throws {
        let presence = presence()
        server.hold(.blocking) { $0[0] == Array("HSET".utf8) }
        presence.report(mark, within: .seconds(1))
        let farewell = Task { await presence.withdraw() }
        #expect(await eventually { clock.sleeperCount == 1 })
        clock.advance(seconds: 0.5)
        await farewell.value
        #expect(server.names == ["HSET", "HDEL"])
        server.release(.blocking)
    }
}
