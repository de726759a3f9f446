/// What is counted.
enum Counter: Int, CaseIterable {
    case freshHits, staleHits, revalidations, fallbacks, originAnswers, collapsedAnswers, generated
    case originRequests, originFailures, originBytes
    case stored, refused, hookFailures, storageErrors
    case flights, waiters, reElections, escapes, hitForMissMarks, sharedErrors, timeouts
    case refreshes, refreshFailures, removals, invalidations, diskHits
    /// Waits of so many milliseconds at most.
    case waits0_1, waits1, waits10, waits100, waits1000, waits10000, waitsLonger
}

/// The counters of one cache.
final class Counters: Sendable {
    private let counts = ThreadCounts(fieldCount: Counter.allCases.count)

    func add(_ counter: Counter, _ amount: Int = 1) {
        counts.add(amount, to: counter.rawValue, by: ReaderGate.current?.index)
    }

    subscript(counter: Counter) -> Int { counts.sum(counter.rawValue) }
}
