import Synchronization

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

/// Counters that many threads add to: one row of cells for each stripe, so that threads working on
/// different keys seldom touch the same cache line.
///
/// `@unchecked Sendable`: the cells are atomics in memory that lives as long as the object.
final class Counters: @unchecked Sendable {
    private static let stripes = 16
    /// Cells of one stripe, rounded up to whole cache lines.
    private static let stride = (Counter.allCases.count + 7) / 8 * 8

    private let cells: UnsafeMutablePointer<Atomic<Int>>

    init() {
        let count = Self.stripes * Self.stride
        cells = .allocate(capacity: count)
        for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: Self.stripes * Self.stride)
        cells.deallocate()
    }

    /// Adds to a counter; `spread` chooses the stripe.
    func add(_ counter: Counter, _ amount: Int = 1, spread: UInt64 = 0) {
        let stripe = Int(spread >> 60)
        cells[stripe * Self.stride + counter.rawValue].wrappingAdd(amount, ordering: .relaxed)
    }

    subscript(counter: Counter) -> Int {
        var sum = 0
        for stripe in 0..<Self.stripes {
            sum += cells[stripe * Self.stride + counter.rawValue].load(ordering: .relaxed)
        }
        return sum
    }
}
