import Synchronization

/// The purges that this machine hands to the log.
///
/// The log returns those that were applied here before, and they must not be applied again: entries
/// may have been stored since. The number is bounded; a purge that was forgotten costs a few
/// requests to the origin.
final class OwnPurges: Sendable {
    private static let countMax = 65_536

    private struct State {
        var order: [FleetPurge.ID] = []
        var next = 0
        var ids: Set<FleetPurge.ID> = []
        /// The purges that the log has taken since the reader asked last.
        var appended: [FleetPurge] = []
    }

    private let state = Mutex(State())

    /// Purges were applied here, and are about to be appended.
    func insert(_ purges: [FleetPurge]) {
        state.withLock { state in
            for purge in purges {
                if state.order.count < Self.countMax {
                    state.order.append(purge.id)
                } else {
                    state.ids.remove(state.order[state.next])
                    state.order[state.next] = purge.id
                    state.next = (state.next + 1) % Self.countMax
                }
                state.ids.insert(purge.id)
            }
        }
    }

    /// Whether the purge was applied here before it was appended.
    func contains(_ id: FleetPurge.ID) -> Bool { state.withLock { $0.ids.contains(id) } }

    /// The log has taken purges of this machine.
    func noteAppended(_ purges: [FleetPurge]) {
        state.withLock { state in
            state.appended += purges
            let excess = state.appended.count - Self.countMax
            if excess > 0 { state.appended.removeFirst(excess) }
        }
    }

    /// Takes the purges that the log has taken since the last call.
    func takeAppended() -> [FleetPurge] {
        state.withLock { state in
            defer { state.appended = [] }
            return state.appended
        }
    }
}
