import CacheEngine
import CacheTestSupport
import RedisClient
import Synchronization
import Testing

@testable import CacheEngineRedis

/// The time that the commands of one request may take, by the clock of a test.
@Suite(.timeLimit(.minutes(5)))
struct LookBudgetTests {
    /// A command that is begun in time may take its whole limit; no other one is begun later, also
    /// none for a further key of the request.
    @Test(arguments: [(0.034, true), (0.035, false)])
    func noCommandIsBegunOnceTheTimeIsSpent(seconds: Double, hasTime: Bool) async throws {
        let server = LaneServer()
        let clock = TestClock()
        let time = FleetTime()
        time.note(serverMilliseconds: 1_700_000_000_000)
        let counts = FleetCounts()
        let surroundings = FleetSurroundings(clock: clock)
        let store = SharedStore(server, namespace: "t", surroundings, time, counts)
        store.begin(log: [UInt8](repeating: 1, count: SharedRecord.logBytes), floor: 0, [], 0)
        server.hold(.data) { _ in true }
        let looking = Task {
            var budget = store.budget(startedNanoseconds: clock.monotonicNanoseconds)
            let key = SharedKey(bytes: [1], resource: [2])
            let look = await store.look(key, clock, &budget) { _ in nil as Int? }
            let names = server.names
            if case .lead(let lease, _) = look {
                store.end(lease, .failed)
                return names
            }
            let variant = SharedKey(bytes: [3], resource: [2])
            _ = await store.look(variant, clock, &budget) { _ in nil as Int? }
            return server.names
        }
        #expect(await eventually { server.isHolding })
        clock.advance(seconds: seconds)
        server.release(.data)
        #expect(await looking.value == (hasTime ? ["GET", "SET", "GET", "GET"] : ["GET"]))
        #expect(counts.sharedFailures.load(ordering: .relaxed) == (hasTime ? 0 : 2))
    }
}
