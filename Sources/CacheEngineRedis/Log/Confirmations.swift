/// Tells which bookmark may be kept: the storage has confirmed every purge up to it.
///
/// Purges are counted in two generations, those before the bookmark that waits and those after it:
/// otherwise purges that come without a pause would put off every bookmark.
///
/// Invariants:
/// 1. The purges that `older` counts began in the generation before the present one.
/// 2. Without a bookmark that waits, `older` is 0.
struct Confirmations: Sendable {
    /// The purges that the storage has not confirmed, of the generation before and of this one.
    private var older = 0
    private var newer = 0
    private var generation: UInt64 = 0
    /// The bookmark that waits for the older purges, and the newest one behind it.
    private var waiting: Bookmark?
    private var newest: Bookmark?
    /// One bookmark is written at a time.
    private var isWriting = false
    /// Whether the storage has confirmed every purge; otherwise the next start must begin at the
    /// bookmark from before it.
    private var isKeeping = true

    /// The purges that the storage has not confirmed.
    var count: Int { older + newer }

    /// A purge begins; returns its generation.
    mutating func begin() -> UInt64 {
        newer += 1
        return generation
    }

    /// The storage has confirmed a purge, or has failed to.
    mutating func end(_ begun: UInt64, isDurable: Bool) {
        if begun == generation { newer -= 1 } else { older -= 1 }
        assert(older >= 0 && newer >= 0, "a purge ends once")
        if !isDurable { isKeeping = false }
    }

    /// The purges up to the bookmark have begun.
    mutating func keep(_ bookmark: Bookmark) { newest = bookmark }

    /// The bookmark to write now; `noteWritten` follows.
    mutating func next() -> Bookmark? {
        guard isKeeping, !isWriting else { return nil }
        if waiting == nil, newest != nil {
            (waiting, newest) = (newest, nil)
            older += newer
            newer = 0
            generation += 1
        }
        guard older == 0 || Mutant.keepsBeforeConfirming.isOn, let bookmark = waiting else {
            return nil
        }
        waiting = nil
        isWriting = true
        return bookmark
    }

    /// The bookmark was written, or could not be.
    mutating func noteWritten() { isWriting = false }
}
