import Synchronization

/// Counts what happens and tells the application's hook.
final class Recorder: Sendable {
    private struct ByReason {
        var refusals: [StoreRefusalReason: Int] = [:]
        var escapes: [String: Int] = [:]
        var waits = [Int](repeating: 0, count: Recorder.waitBounds.count)
    }

    /// Upper bounds of the wait histogram, in milliseconds.
    static let waitBounds = [0.1, 1, 10, 100, 1_000, 10_000, .infinity]

    let counters = Counters()
    private let byReason = Mutex(ByReason())
    private let onEvent: (@Sendable (CacheEvent) -> Void)?

    init(onEvent: (@Sendable (CacheEvent) -> Void)?) { self.onEvent = onEvent }

    func answered(_ source: CacheInfo.Source, spread: UInt64) {
        counters.add(Self.counter(source), spread: spread)
        onEvent?(.answered(source))
    }

    func refused(_ reason: StoreRefusalReason) {
        counters.add(.refused)
        byReason.withLock { $0.refusals[reason, default: 0] += 1 }
        onEvent?(.refused(reason))
    }

    func escaped(_ escape: FlightEscape) {
        counters.add(.escapes)
        byReason.withLock { $0.escapes[escape.rawValue, default: 0] += 1 }
        onEvent?(.escaped(escape.rawValue))
    }

    func waited(nanoseconds: UInt64) {
        let milliseconds = Double(nanoseconds) / 1e6
        let bucket = Self.waitBounds.firstIndex { milliseconds <= $0 } ?? Self.waitBounds.count - 1
        counters.add(.waiters)
        byReason.withLock { $0.waits[bucket] += 1 }
    }

    func originFailed(_ error: any Error) {
        counters.add(.originFailures)
        onEvent?(.originFailed(error))
    }

    func hookFailed(_ error: any Error) {
        counters.add(.hookFailures)
        onEvent?(.hookFailed(error))
    }

    func storageFailed(_ error: any Error) {
        counters.add(.storageErrors)
        onEvent?(.storageFailed(error))
    }

    func refreshed(succeeded: Bool) {
        counters.add(succeeded ? .refreshes : .refreshFailures)
        onEvent?(.refreshed(succeeded: succeeded))
    }

    var snapshot: Statistics {
        var statistics = Statistics()
        for source in CacheInfo.Source.allCases {
            statistics.answers[source] = counters[Self.counter(source)]
        }
        statistics.originRequests = counters[.originRequests]
        statistics.originFailures = counters[.originFailures]
        statistics.originBytes = counters[.originBytes]
        statistics.stored = counters[.stored]
        statistics.hookFailures = counters[.hookFailures]
        statistics.storageErrors = counters[.storageErrors]
        statistics.flights = counters[.flights]
        statistics.waiters = counters[.waiters]
        statistics.reElections = counters[.reElections]
        statistics.hitForMissMarks = counters[.hitForMissMarks]
        statistics.sharedErrors = counters[.sharedErrors]
        statistics.timeouts = counters[.timeouts]
        statistics.refreshes = counters[.refreshes]
        statistics.refreshFailures = counters[.refreshFailures]
        statistics.diskHits = counters[.diskHits]
        statistics.removals = counters[.removals]
        statistics.invalidations = counters[.invalidations]
        byReason.withLock { reasons in
            statistics.refusals = reasons.refusals
            statistics.escapes = reasons.escapes
            statistics.waitMilliseconds = zip(Self.waitBounds, reasons.waits).map { ($0, $1) }
        }
        return statistics
    }

    private static func counter(_ source: CacheInfo.Source) -> Counter {
        switch source {
        case .fresh: .freshHits
        case .stale: .staleHits
        case .revalidated: .revalidations
        case .fallback: .fallbacks
        case .origin: .originAnswers
        case .collapsed: .collapsedAnswers
        case .generated: .generated
        }
    }
}
