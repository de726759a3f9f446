import Synchronization

/// Collects the device failures of all shards, and of the bodies in files, and reports them.
///
/// Every failure is counted. The first one is also reported as an event, and after it at most one a
/// minute, and the end of the disk in any case.
final class DiskFaults: Sendable {
    /// Called for each failure; `isTold` says whether to report it as an event as well.
    typealias Report = @Sendable (_ error: CacheError, _ isTold: Bool) -> Void

    private static let quietNanoseconds: UInt64 = 60_000_000_000

    private let clock: any CacheClock
    private let report: Report
    /// The time of the last failure that was reported as an event.
    private let toldAt = Mutex<UInt64?>(nil)
    private let hasToldEnd = Atomic(false)

    init(clock: any CacheClock, report: @escaping Report) {
        self.clock = clock
        self.report = report
    }

    /// Must be called outside all locks: `report` is the application's code.
    ///
    /// `isEnd` says that nothing is stored any more. Each shard notes that, and one event tells it.
    func note(_ detail: String, isEnd: Bool = false) {
        note(CacheError(.storageFailed, detail: detail), isEnd: isEnd)
    }

    /// The same for an error that a caller of the disk got.
    func note(_ error: CacheError, isEnd: Bool = false) {
        let now = clock.monotonicNanoseconds
        let isFirstEnd = isEnd && !hasToldEnd.exchange(true, ordering: .relaxed)
        let isTold = toldAt.withLock { last in
            if !isFirstEnd, let told = last, now < told + Self.quietNanoseconds { return false }
            last = now
            return true
        }
        report(error, isTold)
    }
}
