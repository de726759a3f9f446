import Synchronization

/// The soft purges of a cache without a disk, which only this process remembers.
final class StaleMarks: SoftPurges {
    private struct State {
        var marks: PurgeTable
        var sequence: UInt64
    }

    private let state: Mutex<State>
    private let newest = NewestMark()
    /// The tier that tells the number of an entry.
    private let backing: any BackingTier
    private let clock: any CacheClock

    init(behind backing: any BackingTier, hasher: KeyHasher, clock: any CacheClock) {
        self.backing = backing
        self.clock = clock
        state = Mutex(
            State(
                marks: PurgeTable(hasher: hasher, newest: newest),
                sequence: Self.sequence(atSeconds: clock.nowSeconds)
            )
        )
    }

    /// Numbers follow the time, so that those of several processes on one store can be compared.
    private static func sequence(atSeconds seconds: Int64) -> UInt64 {
        UInt64(max(0, seconds)) << 24
    }

    func entrySequence(for hash: KeyHash) -> UInt64 {
        let now = Self.sequence(atSeconds: clock.nowSeconds)
        return state.withLock { state in
            state.sequence = max(state.sequence, now)
            return state.sequence
        }
    }

    func markStale(_ tag: String, whenMarked: () -> Void = {}) {
        mark(.tag(tag))
        whenMarked()
    }

    func markVariantsStale(of resource: KeyHash) {
        mark(.tag(ResourceTag.name(of: resource)))
    }

    func markEverythingStale(whenMarked: () -> Void) {
        mark(.everything)
        whenMarked()
    }

    private func mark(_ scope: RemovalScope) {
        let now = Self.sequence(atSeconds: clock.nowSeconds)
        state.withLock { state in
            state.sequence = max(state.sequence + 1, now)
            state.marks.insert(scope, sequence: state.sequence)
        }
    }

    func mayBeMarkedStale(_ entry: Entry) -> Bool {
        newest.mayCover(backing.staleSequence(of: entry), hasTags: entry.isReachedByTags)
    }

    func isMarkedStale(_ entry: Entry) -> Bool {
        let sequence =
            backing.staleSequence(of: entry) + (Mutant.staleMarksEndEarly.isOn ? 1 : 0)
        return state.withLock { $0.marks.covers(entry, sequence: sequence) }
    }

    func isDoubted(_ entry: Entry) -> Bool {
        let sequence = backing.staleSequence(of: entry)
        return state.withLock { $0.marks.coversAll(before: sequence) }
    }
}
