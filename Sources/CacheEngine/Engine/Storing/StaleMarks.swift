import Synchronization

/// The soft purges of a cache without a disk, which only this process remembers.
///
/// Numbers follow the time, so that those of several processes on one store can be compared. A number
/// that no clock here has reached was given by a clock that was ahead, so it says nothing about the
/// order: each mark covers its entry.
final class StaleMarks: SoftPurges {
    private let state: Mutex<PurgeTable>
    /// The largest number given; it rises while the lock is held.
    private let given: Atomic<UInt64>
    private let newest = NewestMark()
    /// The tier that tells the number of an entry.
    private let backing: any BackingTier
    private let clock: any CacheClock

    init(behind backing: any BackingTier, hasher: KeyHasher, clock: any CacheClock) {
        self.backing = backing
        self.clock = clock
        state = Mutex(PurgeTable(hasher: hasher, newest: newest))
        given = Atomic(Self.sequence(atSeconds: clock.nowSeconds))
    }

    private static func sequence(atSeconds seconds: Int64) -> UInt64 {
        UInt64(max(0, seconds)) << 24
    }

    func entrySequence(for hash: KeyHash) -> UInt64 {
        let now = Self.sequence(atSeconds: clock.nowSeconds)
        return state.withLock { _ in give(atLeast: now) }
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
        state.withLock { marks in
            let next = given.load(ordering: .relaxed) + 1
            marks.insert(scope, sequence: give(atLeast: max(next, now)))
        }
    }

    /// Gives a number that is at least as large as each one before it.
    private func give(atLeast sequence: UInt64) -> UInt64 {
        let sequence = max(given.load(ordering: .relaxed), sequence)
        given.store(sequence, ordering: .releasing)
        return sequence
    }

    /// The number of the entry; 0 if no clock here has reached it.
    private func sequence(of entry: Entry) -> UInt64 {
        let sequence = backing.staleSequence(of: entry)
        if sequence <= given.load(ordering: .acquiring) || Mutant.believesEveryClock.isOn {
            return sequence
        }
        return sequence <= Self.sequence(atSeconds: clock.nowSeconds) ? sequence : 0
    }

    func mayBeMarkedStale(_ entry: Entry) -> Bool {
        let hasTags = entry.isReachedByTags
        // Without a mark the clock is not read.
        return newest.mayCover(0, hasTags: hasTags)
            && newest.mayCover(sequence(of: entry), hasTags: hasTags)
    }

    func isMarkedStale(_ entry: Entry) -> Bool {
        let sequence = sequence(of: entry) + (Mutant.staleMarksEndEarly.isOn ? 1 : 0)
        return state.withLock { $0.covers(entry, sequence: sequence) }
    }

    func isDoubted(_ entry: Entry) -> Bool {
        let sequence = sequence(of: entry)
        return state.withLock { $0.coversAll(before: sequence) }
    }
}
