import Synchronization

/// The soft purges of this process, each with its number.
///
/// Each stored entry gets a number too: an entry with a smaller number than a mark that covers it
/// was stored before it. If the disk stands behind the memory, its shards give the numbers and keep
/// the marks; then only `isActive` is used here.
///
/// Invariant: `isActive` is false while there are no marks. A hit needs the lock only for an entry
/// that is older than the newest mark.
final class StaleMarks: Sendable {
    private struct State {
        var marks: PurgeTable
        var sequence: UInt64
    }

    private let state: Mutex<State>
    private let newest = NewestMark()
    private let active = Atomic(false)

    init(startSeconds: Int64, hasher: KeyHasher) {
        state = Mutex(
            State(
                marks: PurgeTable(hasher: hasher, newest: newest),
                sequence: Self.sequence(atSeconds: startSeconds)
            )
        )
    }

    /// Numbers follow the time, so that those of several processes on one store can be compared.
    private static func sequence(atSeconds seconds: Int64) -> UInt64 {
        UInt64(max(0, seconds)) << 24
    }

    var isActive: Bool { active.load(ordering: .acquiring) }

    /// Notes that marks exist, which the disk keeps.
    func activate() { active.store(true, ordering: .releasing) }

    /// The number of an entry that is stored now: later marks cover it.
    func entrySequence(nowSeconds: Int64) -> UInt64 {
        state.withLock { state in
            state.sequence = max(state.sequence, Self.sequence(atSeconds: nowSeconds))
            return state.sequence
        }
    }

    /// Marks every entry that carries the tag and is stored by now.
    func mark(_ tag: String, nowSeconds: Int64) { mark(.tag(tag), nowSeconds: nowSeconds) }

    /// Marks every entry that is stored by now.
    func markEverything(nowSeconds: Int64) { mark(.everything, nowSeconds: nowSeconds) }

    private func mark(_ scope: RemovalScope, nowSeconds: Int64) {
        state.withLock { state in
            state.sequence = max(state.sequence + 1, Self.sequence(atSeconds: nowSeconds))
            state.marks.insert(scope, sequence: state.sequence)
        }
        activate()
    }

    /// Whether a mark may cover an entry with that number; takes no lock, and `false` is certain.
    func mayCover(_ sequence: UInt64, hasTags: Bool) -> Bool {
        newest.mayCover(sequence, hasTags: hasTags)
    }

    /// Whether an entry with that number was stored before everything was marked.
    func coversAll(before sequence: UInt64) -> Bool {
        state.withLock { $0.marks.coversAll(before: sequence) }
    }

    /// Whether the entry with that number is marked.
    func covers(_ entry: Entry, sequence: UInt64) -> Bool {
        let sequence = sequence + (Mutant.staleMarksEndEarly.isOn ? 1 : 0)
        return state.withLock { $0.marks.covers(entry, sequence: sequence) }
    }
}
