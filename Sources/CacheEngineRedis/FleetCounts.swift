import CacheEngine
import Synchronization

/// The counts of one machine, written by its reader and its writer.
final class FleetCounts: Sendable {
    let appended = Atomic(0)
    let refused = Atomic(0)
    let applied = Atomic(0)
    let notApplied = Atomic(0)
    let replays = Atomic(0)
    let restored = Atomic(0)
    let allMarkedStale = Atomic(0)
    let cutOffs = Atomic(0)
    let sharedHits = Atomic(0)
    let sharedMisses = Atomic(0)
    let sharedWaits = Atomic(0)
    let sharedFailures = Atomic(0)
    let sharedUnreadable = Atomic(0)
    let published = Atomic(0)
    let unpublished = Atomic(0)
    let isLinked = Atomic(false)
    /// The moment, in nanoseconds, when the log was last read to its end.
    let lastContact: Atomic<UInt64>
    /// Whether the cache answers requests, so that entries may be stored.
    let isServing = Atomic(false)
    /// Whether the log has purges, or may have some, that are not applied here yet.
    let isReplaying = Atomic(false)
    /// The largest epoch of the log that the reader has seen, or a receipt of this machine has.
    let epoch = Atomic<UInt64>(0)
    /// The epoch in which the log was read to its end: purges that it has lost are known by then.
    let readEpoch = Atomic<UInt64>(0)
    private let clock: any CacheClock

    init(_ clock: any CacheClock = SystemClock()) {
        self.clock = clock
        lastContact = Atomic(clock.monotonicNanoseconds)
    }

    /// The counts as the application sees them.
    func statistics() -> FleetStatistics {
        var statistics = FleetStatistics()
        statistics.isLinked = isLinked.load(ordering: .relaxed)
        let contact = lastContact.load(ordering: .relaxed)
        let now = clock.monotonicNanoseconds
        statistics.lag = .nanoseconds(Int64(clamping: now > contact ? now - contact : 0))
        statistics.appended = appended.load(ordering: .relaxed)
        statistics.refused = refused.load(ordering: .relaxed)
        statistics.applied = applied.load(ordering: .relaxed)
        statistics.notApplied = notApplied.load(ordering: .relaxed)
        statistics.replays = replays.load(ordering: .relaxed)
        statistics.restored = restored.load(ordering: .relaxed)
        statistics.allMarkedStale = allMarkedStale.load(ordering: .relaxed)
        statistics.cutOffs = cutOffs.load(ordering: .relaxed)
        statistics.sharedHits = sharedHits.load(ordering: .relaxed)
        statistics.sharedMisses = sharedMisses.load(ordering: .relaxed)
        statistics.sharedWaits = sharedWaits.load(ordering: .relaxed)
        statistics.sharedFailures = sharedFailures.load(ordering: .relaxed)
        statistics.sharedUnreadable = sharedUnreadable.load(ordering: .relaxed)
        statistics.published = published.load(ordering: .relaxed)
        statistics.unpublished = unpublished.load(ordering: .relaxed)
        return statistics
    }
}

extension Atomic where Value == Int {
    /// Counts events.
    borrowing func count(_ number: Int = 1) { wrappingAdd(number, ordering: .relaxed) }
}
