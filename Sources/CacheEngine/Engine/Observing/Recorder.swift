import Synchronization

/// Counts events, and passes them to the application's hook.
final class Recorder: Sendable {
    /// The buckets of the wait histogram, each with its upper bound in milliseconds.
    private static let waits: [(bound: Double, counter: Counter)] = [
        (0.1, .waits0_1), (1, .waits1), (10, .waits10), (100, .waits100), (1_000, .waits1000),
        (10_000, .waits10000), (.infinity, .waitsLonger),
    ]

    let counters = Counters()
    /// The engine has some thirty reasons; few of them occur, and comparing one with those takes
    /// less than hashing it.
    private let refusals = Mutex<[(reason: StoreRefusalReason, count: Int)]>([])
    private let onEvent: (@Sendable (CacheEvent) -> Void)?
    private let onFault: (@Sendable (CacheEvent) -> Void)?

    init(
        onEvent: (@Sendable (CacheEvent) -> Void)?,
        onFault: (@Sendable (CacheEvent) -> Void)? = nil
    ) {
        self.onEvent = onEvent
        self.onFault = onFault
    }

    /// Whether the application is told of each event.
    @inline(__always)
    var hasHook: Bool { onEvent != nil }

    /// Counts a response without a report.
    @inline(__always)
    func count(_ source: CacheInfo.Source) { counters.add(Self.counter(source)) }

    /// Counts a response; `answer` is made only for a hook.
    @inline(__always)
    func answered(_ source: CacheInfo.Source, _ answer: @autoclosure () -> CacheEvent.Answer) {
        count(source)
        if let onEvent { onEvent(.answered(answer())) }
    }

    func refused(_ reason: StoreRefusalReason, _ request: @autoclosure () -> CacheRequest) {
        refusals.withLock { refusals in
            if let place = refusals.firstIndex(where: { $0.reason == reason }) {
                refusals[place].count += 1
            } else {
                refusals.append((reason, 1))
            }
        }
        if let onEvent { onEvent(.refused(reason, request: request())) }
    }

    /// Counts the outcome of storing an entry.
    func count(_ outcome: StoreOutcome, _ request: @autoclosure () -> CacheRequest) {
        switch outcome {
        case .stored: counters.add(.stored)
        case .refused(let reason): refused(StoreRefusalReason(reason), request())
        }
    }

    /// Notes a request that goes alone although it would share its flight; any other leaves nothing.
    func escaped(_ escape: FlightEscape, _ request: CacheRequest) {
        guard let counter = Self.counter(escape) else { return }
        counters.add(counter)
        onEvent?(.escaped(escape.rawValue, request: request))
    }

    func waited(nanoseconds: UInt64) {
        let milliseconds = Double(nanoseconds) / 1e6
        counters.add(.waiters)
        counters.add(.waitedMicroseconds, Int(clamping: nanoseconds / 1_000))
        for (bound, counter) in Self.waits where milliseconds <= bound {
            return counters.add(counter)
        }
    }

    func originFailed(_ error: any Error, _ request: CacheRequest) {
        counters.add(.originFailures)
        if (error as? CacheError)?.code == .originTimedOut { counters.add(.timeouts) }
        onEvent?(.originFailed(error, request: request))
    }

    func hookFailed(_ error: any Error, _ request: CacheRequest) {
        counters.add(.hookFailures)
        onEvent?(.hookFailed(error, request: request))
    }

    func storageFailed(_ error: any Error, isTold: Bool = true) {
        counters.add(.storageErrors)
        if isTold { report(.storageFailed(error)) }
    }

    /// Passes an event of storage or fleet on.
    func report(_ event: CacheEvent) {
        onFault?(event)
        onEvent?(event)
    }

    func refreshed(succeeded: Bool, _ request: CacheRequest) {
        counters.add(succeeded ? .refreshes : .refreshFailures)
        onEvent?(.refreshed(succeeded: succeeded, request: request))
    }

    var snapshot: HTTPCache.Statistics {
        var statistics = HTTPCache.Statistics()
        for source in CacheInfo.Source.allCases {
            statistics.answers[source] = counters[Self.counter(source)]
        }
        for row in HTTPCache.Statistics.table {
            guard case .field(let field, let counter?) = row.source else { continue }
            statistics[keyPath: field] = counters[counter]
        }
        for (reason, count) in refusals.withLock({ $0 }) { statistics.refusals[reason] = count }
        for escape in FlightEscape.allCases {
            let count = Self.counter(escape).map { counters[$0] } ?? 0
            if count > 0 { statistics.escapes[escape.rawValue] = count }
        }
        statistics.waitMilliseconds = Self.waits.map { ($0.bound, counters[$0.counter]) }
        statistics.totalWait = .microseconds(counters[.waitedMicroseconds])
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

    private static func counter(_ escape: FlightEscape) -> Counter? {
        switch escape {
        case .unshareable: .escapesUnshareable
        case .hitForMiss: .escapesHitForMiss
        case .waitedTooLong: .escapesWaitedTooLong
        case .crowded: .escapesCrowded
        case .tableFull: .escapesTableFull
        case .lookedTooOften: .escapesLookedTooOften
        case .mayNotShare: nil
        }
    }
}

/// The names of the counters.
enum Counter: Int, CaseIterable {
    case freshHits, staleHits, revalidations, fallbacks, originAnswers, collapsedAnswers, generated
    case originRequests, originFailures, originBytes
    case stored, hookFailures, storageErrors
    case flights, waiters, reElections, hitForMissMarks, sharedErrors, timeouts
    case refreshes, refreshFailures, removals, invalidations, diskHits
    /// Waits of at most that many milliseconds.
    case waits0_1, waits1, waits10, waits100, waits1000, waits10000, waitsLonger
    case waitedMicroseconds
    /// Requests that went alone although they would share, by `FlightEscape`.
    case escapesUnshareable, escapesHitForMiss, escapesWaitedTooLong, escapesCrowded
    case escapesTableFull, escapesLookedTooOften
}

/// The counters of one cache.
final class Counters: Sendable {
    private let counts = ThreadCounts(fieldCount: Counter.allCases.count)

    func add(_ counter: Counter, _ amount: Int = 1) {
        counts.add(amount, to: counter.rawValue, by: ReaderGate.current?.index)
    }

    subscript(counter: Counter) -> Int { counts.sum(counter.rawValue) }
}
