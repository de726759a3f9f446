import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// The limit on concurrent origin requests for one key.
@Suite struct OriginGateTests {
    /// Counts the tasks inside, and their maximum.
    private final class Census: Sendable {
        private let state = Mutex((inside: 0, most: 0, ended: 0))
        var most: Int { state.withLock { $0.most } }
        var ended: Int { state.withLock { $0.ended } }

        func enter() {
            state.withLock { state in
                state.inside += 1
                state.most = max(state.most, state.inside)
            }
        }

        func leave() { state.withLock { $0.inside -= 1 } }
        func end() { state.withLock { $0.ended += 1 } }
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func gateAdmitsAtMostItsLimitAndEveryRequestInTheEnd(seed: UInt64) async {
        var random = SeededRandom(seed: seed)
        let executor = SeededExecutor(seed: seed)
        let limit = Int.random(in: 1...4, using: &random)
        let gate = OriginGate(perKeyMax: limit)
        let key = KeyHash(placement: 1, identity: 2)
        let census = Census()
        for _ in 0..<20 {
            let turns = Int.random(in: 1..<8, using: &random)
            let task = executor.start {
                defer { census.end() }
                guard (try? await gate.enter(key)) != nil else { return }
                census.enter()
                for _ in 0..<turns { await Task.yield() }
                census.leave()
                gate.leave(key)
            }
            guard Int.random(in: 0..<3, using: &random) == 0 else { continue }
            let patience = Int.random(in: 0..<12, using: &random)
            executor.start {
                for _ in 0..<patience { await Task.yield() }
                task.cancel()
            }
        }
        await executor.settle()
        #expect(census.ended == 20)
        #expect(census.most <= limit && census.most > 0)
        #expect(gate.keyCount == 0)
    }
}
