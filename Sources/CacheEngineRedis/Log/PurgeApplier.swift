import CacheEngine
import Synchronization

/// Applies the purges of other machines to this one, and keeps the place in the log once the storage
/// has confirmed them.
///
/// The reader waits until a purge holds in this process, and not for the storage. If it did, a device
/// that hangs would keep later purges from being applied, and no doubt would be raised.
final class PurgeApplier: Sendable {
    /// The purges that may wait for the storage; the reader waits before a further one.
    static let unconfirmedCountMax = 4_096
    /// The purges that are applied at the same time, so that reads of a disk overlap.
    private static let appliedCountMax = 64

    private struct State {
        var confirmations = Confirmations()
        /// Those who wait for room.
        var waiters: [Race<Void>] = []
    }

    private let receiver: any PurgeReceiver
    private let surroundings: FleetSurroundings
    private let counts: FleetCounts
    private let state = Mutex(State())

    init(
        _ receiver: any PurgeReceiver,
        _ surroundings: FleetSurroundings,
        _ counts: FleetCounts
    ) {
        self.receiver = receiver
        self.surroundings = surroundings
        self.counts = counts
    }

    /// Applies purges that follow each other in the log, in any order: none of them depends on
    /// another.
    ///
    /// Returns once they hold in this process. While one of them waits for the storage, `whenLate`
    /// is called each time that so many nanoseconds have passed.
    func apply(
        _ purges: [FleetPurge],
        lateAfter nanoseconds: UInt64,
        _ whenLate: () async -> Void
    ) async {
        var rest = purges[...]
        while !rest.isEmpty {
            var started: [Race<Void>] = []
            for purge in rest.prefix(Self.appliedCountMax) {
                let generation = await enter(lateAfter: nanoseconds, whenLate)
                let isHeld = start(generation) { [receiver, counts] whenApplied in
                    try await receiver.apply(purge.purge, whenApplied: whenApplied)
                    counts.applied.count()
                }
                started.append(isHeld)
            }
            rest = rest.dropFirst(started.count)
            for isHeld in started { try? await isHeld.resultDespiteCancellation() }
        }
    }

    /// Lets the origin confirm every entry that is stored now; returns once that holds in this
    /// process.
    ///
    /// It needs no room: a cache that starts beside a device that hangs would wait for it.
    func doubtEverything() async {
        let generation = state.withLock { $0.confirmations.begin() }
        let isHeld = start(generation) { [receiver] whenApplied in
            try await receiver.markEverythingStale(whenApplied: whenApplied)
        }
        try? await isHeld.resultDespiteCancellation()
        counts.allMarkedStale.count()
    }

    /// Keeps the bookmark once everything that was started before is confirmed.
    func keep(_ bookmark: Bookmark) {
        state.withLock { $0.confirmations.keep(bookmark) }
        write()
    }

    // MARK: One purge

    /// Starts `body` in a task; the result is there as soon as `body` has called its argument.
    private func start(
        _ generation: UInt64,
        _ body: @escaping @Sendable (_ whenApplied: () -> Void) async throws -> Void
    ) -> Race<Void> {
        let isHeld = Race<Void>()
        surroundings.start { [self] in
            var isDurable = true
            do {
                try await body {
                    if !Mutant.confirmsInTheReader.isOn { isHeld.finish(.success(())) }
                }
            } catch { isDurable = false }
            if !isDurable { counts.notApplied.count() }
            leave(generation, isDurable: isDurable)
            isHeld.finish(.success(()))
        }
        return isHeld
    }

    /// Waits for room, and returns the generation of one more purge.
    private func enter(
        lateAfter nanoseconds: UInt64,
        _ whenLate: () async -> Void
    ) async -> UInt64 {
        while true {
            let room = Race<Void>()
            let generation: UInt64? = state.withLock { state in
                guard state.confirmations.count >= Self.unconfirmedCountMax else {
                    return state.confirmations.begin()
                }
                state.waiters.append(room)
                return nil
            }
            if let generation { return generation }
            let timer = surroundings.start { [clock = surroundings.clock] in
                try? await clock.sleep(nanoseconds: nanoseconds)
                room.finish(.success(()))
            }
            try? await room.resultDespiteCancellation()
            timer.cancel()
            // `leave` empties the list, and the timer does not.
            let isLate = state.withLock { state in
                let place = state.waiters.firstIndex { $0 === room }
                if let place { state.waiters.remove(at: place) }
                return place != nil
            }
            if isLate, !Mutant.waitsForTheStorageInSilence.isOn { await whenLate() }
        }
    }

    private func leave(_ generation: UInt64, isDurable: Bool) {
        let waiters = state.withLock { state in
            state.confirmations.end(generation, isDurable: isDurable)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.finish(.success(())) }
        write()
    }

    // MARK: The bookmark

    /// Writes the bookmark that may be kept, if there is one.
    private func write() {
        guard let bookmark = state.withLock({ $0.confirmations.next() }) else { return }
        surroundings.start { [self] in
            // An older position is replayed at the next start, so a failure costs nothing else.
            try? await receiver.keep(bookmark: bookmark.encoded)
            state.withLock { $0.confirmations.noteWritten() }
            write()
        }
    }
}
