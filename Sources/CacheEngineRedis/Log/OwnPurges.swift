import Synchronization

/// The purges that this machine has applied before it appended them.
///
/// The log returns them, and they must not be applied again: entries may have been stored since. The
/// number is bounded; a purge that was forgotten costs a few requests to the origin.
final class OwnPurges: Sendable {
    private static let countMax = 65_536

    private struct State {
        var order: [FleetPurge.ID] = []
        var next = 0
        var ids: Set<FleetPurge.ID> = []
    }

    private let state = Mutex(State())

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

    func contains(_ id: FleetPurge.ID) -> Bool { state.withLock { $0.ids.contains(id) } }
}
