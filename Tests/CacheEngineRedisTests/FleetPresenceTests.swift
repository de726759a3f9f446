import CacheEngine
import CacheTestSupport
import RESP
import RedisClient
import Testing

@testable import CacheEngineRedis
@testable import Simulation

/// The reports of one machine, in the order in which the log's server gets them.
@Suite struct FleetPresenceTests {
    private let server = LaneServer()
    private let clock = TestClock()
    private let keys = LogKeys(namespace: "test")
    private let mark = Bookmark(incarnation: FleetPurge.ID(1), position: FleetPosition(1, 1))

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
