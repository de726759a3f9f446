import CacheEngine
import CacheTestSupport
import RedisClient
import Testing

@testable import CacheEngineRedis
@testable import Simulation

/// The reports of a machine that waits for the master of its log, or for its own storage.
@Suite(.timeLimit(.minutes(1)))
struct LogLoopTests {
    private static let keys = LogKeys(namespace: "t")

    private let server = LaneServer()
    private let receiver = ModelReceiver()

    private func fleet(
        _ options: RedisFleetOptions = RedisFleetOptions(),
        _ surroundings: FleetSurroundings = FleetSurroundings()
    ) -> RedisFleet {
        RedisFleet(
            log: server,
            entries: nil,
            "t",
            at: LaneServer.address,
            options,
            surroundings
        )
    }

    /// The first command asks the sentinels for the master, and ends before their answer.
    @Test func startThatWaitsForTheMasterIsNoFailure() async {
        server.fail(1, .masterUnknown)
        let fleet = fleet()
        await fleet.start(receiver)
        #expect(await eventually { fleet.statistics.isLinked })
        #expect(receiver.failures.isEmpty)
        await fleet.shutDown()
    }

    /// The storage hangs, so many purges wait for it, and the log is read no further.
    @Test func machineWhosePurgesWaitForTheStorageIsCutOff() async throws {
        let clock = TestClock()
        var options = RedisFleetOptions()
        options.maximumLag = .seconds(2)
        options.whenCutOff = .revalidate
        let fleet = fleet(options, FleetSurroundings(clock: clock))
        await fleet.start(receiver)
        receiver.hold()
        // The reader takes them together.
        server.hold(.blocking) { _ in true }
        #expect(await eventually { server.isHolding(.blocking) })
        let count = PurgeApplier.unconfirmedCountMax
        for number in 0...count { server.append(number, to: Self.keys) }
        server.release(.blocking)
        #expect(await eventually { receiver.applied.count == count && clock.sleeperCount == 1 })
        #expect(fleet.statistics.isLinked && receiver.failures.isEmpty)
        for round in 1...2 {
            clock.advance(seconds: 2)
            let isDoubted = await eventually {
                receiver.doubts == round && clock.sleeperCount == 1
            }
            try #require(isDoubted)
        }
        #expect(fleet.statistics.cutOffs == 1 && !fleet.statistics.isLinked)
        #expect(receiver.failures.count == 1)
        #expect(receiver.failures.first?.contains("purges wait for the storage") == true)
        receiver.confirm()
        #expect(await eventually { fleet.statistics.isLinked })
        #expect(receiver.applied.count == count + 1)
        await fleet.shutDown()
    }
}
