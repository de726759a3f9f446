import Synchronization

/// What the watcher of a flight needs to know of its leader.
final class FlightWatch: Sendable {
    private struct State {
        var leader: Task<Void, Never>?
        var watcher: Task<Void, Never>?
        var chain: BodyChain?
        var hasEnded = false
    }

    private let state = Mutex(State())
    private let pieces = Atomic(0)

    /// Grows with every piece of the body.
    var pieceCount: Int { pieces.load(ordering: .relaxed) }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Whether the body stands still for want of a reader who reads on, not of bytes.
    var isHeldUpByReaders: Bool { state.withLock { $0.chain }?.isHeldUpByReaders ?? false }

    func advance() { pieces.wrappingAdd(1, ordering: .relaxed) }

    func attach(leader: Task<Void, Never>) { state.withLock { $0.leader = leader } }

    func attach(watcher: Task<Void, Never>) {
        let hasEnded = state.withLock { state in
            state.watcher = watcher
            return state.hasEnded
        }
        if hasEnded { watcher.cancel() }
    }

    func arriving(_ chain: BodyChain) { state.withLock { $0.chain = chain } }

    /// The leader took too long: what it was delivering breaks off, and it is cancelled.
    func expire(_ error: any Error) {
        let (leader, chain) = state.withLock { ($0.leader, $0.chain) }
        chain?.fail(error)
        leader?.cancel()
    }

    func end() {
        state.withLock { state in
            state.hasEnded = true
            state.leader = nil
            state.chain = nil
            return state.watcher.take()
        }?.cancel()
    }
}
