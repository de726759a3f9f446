import Synchronization

/// The tags whose entries have been declared stale.
///
/// Each stored entry gets a number, and so does each mark: an entry with a smaller number than the
/// mark of one of its tags was stored before it. If the disk stands behind the memory, its shards
/// give the numbers and keep the marks; then only `isActive` is used here.
///
/// Invariant: `isActive` is false while there are no marks. A hit needs the lock only for an entry
/// that is older than the newest mark.
final class StaleMarks: Sendable {
    /// Beyond this number of tags, every entry stored so far counts as marked.
    private static let tagsMax = 10_000

    private struct State {
        var marks: [String: UInt64] = [:]
        /// Entries with a smaller number are stale, whatever their tags.
        var floor: UInt64 = 0
        var sequence: UInt64
    }

    private let state: Mutex<State>
    private let newest = NewestMark()
    private let active = Atomic(false)

    init(startSeconds: Int64) {
        state = Mutex(State(sequence: Self.sequence(atSeconds: startSeconds)))
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

    func mark(_ tag: String, nowSeconds: Int64) {
        state.withLock { state in
            state.sequence = max(state.sequence + 1, Self.sequence(atSeconds: nowSeconds))
            if state.marks.count >= Self.tagsMax {
                state.marks = [:]
                state.floor = state.sequence
                newest.raiseForEverything(to: state.sequence)
            }
            state.marks[tag] = state.sequence
            newest.raise(to: state.sequence)
        }
        activate()
    }

    /// Marks every entry that is stored by now.
    func markEverything(nowSeconds: Int64) {
        state.withLock { state in
            state.sequence = max(state.sequence + 1, Self.sequence(atSeconds: nowSeconds))
            state.marks = [:]
            state.floor = state.sequence
            newest.raiseForEverything(to: state.sequence)
        }
        activate()
    }

    /// Whether a mark may cover an entry with that number; takes no lock, and `false` is certain.
    func mayCover(_ sequence: UInt64, hasTags: Bool) -> Bool {
        newest.mayCover(sequence, hasTags: hasTags)
    }

    /// Whether an entry with that number was stored before everything was marked.
    func coversAll(before sequence: UInt64) -> Bool { state.withLock { sequence < $0.floor } }

    /// Whether an entry with that number and these encoded tags is marked.
    func covers(_ tags: UnsafeRawBufferPointer, sequence: UInt64) -> Bool {
        let sequence = sequence + (Mutant.staleMarksEndEarly.isOn ? 1 : 0)
        return state.withLock { state in
            if sequence < state.floor { return true }
            var isCovered = false
            TagList.forEach(in: tags) { tag in
                let tag = String(decoding: tag, as: UTF8.self)
                if let mark = state.marks[tag], sequence < mark { isCovered = true }
            }
            return isCovered
        }
    }
}
