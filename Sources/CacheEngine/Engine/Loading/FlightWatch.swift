import Synchronization

/// What the watcher of a flight needs to know of its leader.
final class FlightWatch: Sendable {
    private struct State {
        var load: Load
        var leader: Task<Void, Never>?
        var watcher: Task<Void, Never>?
        var chain: BodyChain?
        var hasEnded = false
    }

    private let state: Mutex<State>
    private let pieces = Atomic(0)

    init(_ load: Load) { state = Mutex(State(load: load)) }

    /// Grows with every piece of the body.
    var pieceCount: Int { pieces.load(ordering: .relaxed) }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }
    /// What is being fetched now.
    var load: Load { state.withLock { $0.load } }

    func advance() { pieces.wrappingAdd(1, ordering: .relaxed) }

    func begin(_ load: Load, leader: Task<Void, Never>) {
        state.withLock { state in
            state.load = load
            state.leader = leader
        }
    }

    func attach(watcher: Task<Void, Never>) {
        let hasEnded = state.withLock { state in
            state.watcher = watcher
            return state.hasEnded
        }
        if hasEnded { watcher.cancel() }
    }

    func arriving(_ chain: BodyChain) { state.withLock { $0.chain = chain } }

    /// The leader took too long: it is cancelled, and what it was delivering breaks off.
    func expire(_ error: any Error) {
        let (leader, chain) = state.withLock { ($0.leader, $0.chain.take()) }
        leader?.cancel()
        chain?.fail(error)
        chain?.stopWaiting()
    }

    func end() {
        state.withLock { state in
            state.hasEnded = true
            return state.watcher.take()
        }?.cancel()
    }
}
