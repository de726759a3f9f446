import Synchronization

/// What is to be known of a flight to tell whether it stands still.
final class FlightWatch: Sendable {
    /// How far a flight has come.
    struct Progress: Hashable {
        var attempt: Int
        var isUnanswered: Bool
        var pieces: Int
    }

    private struct State {
        var leader: Task<Void, Never>?
        var chain: BodyChain?
        var seen = Progress(attempt: 1, isUnanswered: true, pieces: 0)
        var seenNanoseconds: UInt64
        var hasEnded = false
    }

    private let state: Mutex<State>
    private let pieces = Atomic(0)

    init(nowNanoseconds: UInt64) { state = Mutex(State(seenNanoseconds: nowNanoseconds)) }

    /// Another piece of the body has come.
    func advance() { pieces.wrappingAdd(1, ordering: .relaxed) }

    func attach(leader: Task<Void, Never>) { state.withLock { $0.leader = leader } }

    func arriving(_ chain: BodyChain) { state.withLock { $0.chain = chain } }

    /// How far the flight is, and for how long it has been no farther; nil when it has ended.
    ///
    /// A body that stands still for want of a reader who reads on, not of bytes, counts as moving.
    func look(
        at flight: HTTPFlight,
        nowNanoseconds: UInt64
    ) -> (progress: Progress, stillNanoseconds: UInt64)? {
        let progress = Progress(
            attempt: flight.attempt,
            isUnanswered: flight.isUnanswered,
            pieces: pieces.load(ordering: .relaxed)
        )
        let isHeldUp = state.withLock { $0.chain }?.isHeldUpByReaders ?? false
        return state.withLock { state in
            guard !state.hasEnded else { return nil }
            if isHeldUp || progress != state.seen {
                state.seen = progress
                state.seenNanoseconds = nowNanoseconds
            }
            return (progress, nowNanoseconds - min(nowNanoseconds, state.seenNanoseconds))
        }
    }

    /// The leader under way, and what it is delivering.
    var underWay: (leader: Task<Void, Never>?, chain: BodyChain?) {
        state.withLock { ($0.leader, $0.chain) }
    }

    func end() {
        state.withLock { state in
            state.hasEnded = true
            state.leader = nil
            state.chain = nil
        }
    }
}
