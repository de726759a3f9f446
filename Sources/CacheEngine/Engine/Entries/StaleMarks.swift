import Synchronization

/// Tags whose entries have been declared stale, and when.
///
/// Invariant: `isActive` is false while there is no mark, so that hits need no lock.
final class StaleMarks: Sendable {
    /// More tags than this, and everything stored so far counts as marked.
    private static let tagsMax = 10_000

    private struct State {
        var marks: [String: Int64] = [:]
        /// What was stored up to this second is stale whatever its tags.
        var everythingSeconds = Int64.min
    }

    private let state = Mutex(State())
    private let active = Atomic(false)

    var isActive: Bool { active.load(ordering: .acquiring) }

    func mark(_ tag: String, atSeconds now: Int64) {
        state.withLock { state in
            if state.marks.count >= Self.tagsMax {
                state.marks = [:]
                state.everythingSeconds = now
            }
            state.marks[tag] = now
        }
        active.store(true, ordering: .releasing)
    }

    /// Whether an entry with these encoded tags, last confirmed at that second, is marked.
    func covers(_ tags: UnsafeRawBufferPointer, confirmedSeconds: Int64) -> Bool {
        state.withLock { state in
            if confirmedSeconds <= state.everythingSeconds { return true }
            var isCovered = false
            TagList.forEach(in: tags) { tag in
                let tag = String(decoding: tag, as: UTF8.self)
                if let mark = state.marks[tag], confirmedSeconds <= mark { isCovered = true }
            }
            return isCovered
        }
    }
}
