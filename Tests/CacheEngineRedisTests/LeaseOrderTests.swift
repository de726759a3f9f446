import CacheEngine
import CacheTestSupport
import RESP
import RedisClient
import Simulation
import Synchronization
import Testing

@testable import CacheEngineRedis

/// The leases of look-ups: of one whose caller has left before the reply, and of another machine.
@Suite(.timeLimit(.minutes(1)))
struct LeaseOrderTests {
    /// Why there is no reply.
    enum Loss: CaseIterable, Sendable {
        case timedOut, cancelled
    }

    /// A release that overtook the request for its lease would leave the key blocked for the lease's
    /// three seconds, although no machine holds it.
    @Test(arguments: Loss.allCases)
    func releaseComesBehindTheRequestForItsLease(_ loss: Loss) async throws {
        let server = LaneServer()
        let store = Self.store(over: server)
        let key = SharedKey(bytes: [1], resource: [2])
        let name = try #require(store.name(of: key))
        // The server knows the script, so that one exchange releases.
        let words = [[], Array("free".utf8), []] as [[UInt8]]
        let script = FleetScript.lease.command(name.both, isWhole: true, words)
        #expect(server.model.run(script.parsedWords) == .integer(0))
        server.hold(.data) { $0[0] == Array("SET".utf8) }
        let looking = Task {
            var budget = store.budget(startedNanoseconds: 0)
            let look = await store.look(key, SystemClock(), &budget) { _ in nil as Int? }
            if case .alone = look { return true }
            return false
        }
        #expect(await eventually { server.isHolding })
        if loss == .cancelled { looking.cancel() } else { server.abandon(.data) }
        #expect(await looking.value)
        #expect(await eventually { server.names.contains("EVALSHA") })
        server.release(.data)
        #expect(server.model.run([Array("EXISTS".utf8), name.lease]) == .integer(0))
    }

    /// A machine that holds its lease for longer delays no request beyond the limit.
    @Test func lookEndsAtItsLimitWhileAnotherMachineLeads() async throws {
        let server = LaneServer()
        let clock = TestClock()
        let store = Self.store(over: server, FleetSurroundings(clock: clock))
        let key = SharedKey(bytes: [1], resource: [2])
        let name = try #require(store.name(of: key))
        _ = server.model.run([Array("SET".utf8), name.lease, Array("other".utf8)])
        let start = clock.monotonicNanoseconds
        let isOver = Atomic(false)
        let looking = Task {
            var budget = store.budget(startedNanoseconds: start)
            let look = await store.look(key, clock, &budget) { _ in nil as Int? }
            isOver.store(true, ordering: .relaxed)
            if case .alone = look { return true }
            return false
        }
        let hasEnded = await eventually {
            if clock.sleeperCount == 1 { clock.advanceToNextSleeper(within: 1) }
            return isOver.load(ordering: .relaxed)
        }
        #expect(hasEnded)
        looking.cancel()
        #expect(await looking.value)
        let waited = clock.monotonicNanoseconds - start
        #expect((2_000_000_000...2_100_000_000).contains(waited), "\(waited)")
    }

    private static func store(
        over server: LaneServer,
        _ surroundings: FleetSurroundings = FleetSurroundings()
    ) -> SharedStore {
        let time = FleetTime()
        time.note(serverMilliseconds: 1_700_000_000_000)
        let store = SharedStore(server, namespace: "t", surroundings, time, FleetCounts())
        store.begin(log: [UInt8](repeating: 1, count: SharedRecord.logBytes), floor: 0, [], 0)
        return store
    }
}
