/// Bursts of hits that are due at fixed moments, and their times in windows.
///
/// A hit that blocks delays the hits after it. If only those that were made counted, a long block
/// would be one slow hit among fast ones ("coordinated omission"). So a burst that became due
/// while an earlier one went on is left out, and each of its hits counts with the time from its due
/// moment until the load went on. A burst belongs to the window in which it was due.
///
/// A burst that begins late by less than a period is made, and its hits are timed from their own
/// beginnings: the timer that wakes the load is never exact.
struct BurstSchedule {
    static let periodNanoseconds: UInt64 = 2_500_000
    static let windowNanoseconds: UInt64 = 250_000_000
    /// Many, so that the first hits after a pause, which find cold caches, are not the p99.
    static let hitsOfBurst = 2_000

    private let start: UInt64
    /// The number of the next burst, or of the one that goes on.
    private var number: UInt64 = 0
    private var windows: [Histogram] = []

    init(start: UInt64) { self.start = start }

    /// The moment at which the burst is due.
    var due: UInt64 { start + number * Self.periodNanoseconds }

    /// Records a hit of the burst that goes on.
    mutating func record(_ nanoseconds: UInt64) { record(nanoseconds, times: 1) }

    /// Ends the burst that goes on, and leaves out those that became due meanwhile.
    mutating func end(at now: UInt64) {
        number += 1
        leaveOut(before: now)
    }

    /// Returns whether the burst can still be made; otherwise leaves out all that are due.
    mutating func canBegin(at now: UInt64) -> Bool {
        if now < due + Self.periodNanoseconds { return true }
        leaveOut(before: now)
        return false
    }

    /// Counts the bursts that were due before `now` as waiting until then.
    mutating func leaveOut(before now: UInt64) {
        while due < now {
            record(now - due, times: UInt64(Self.hitsOfBurst))
            number += 1
        }
    }

    private mutating func record(_ nanoseconds: UInt64, times: UInt64) {
        let window = Int((due - start) / Self.windowNanoseconds)
        while windows.count <= window { windows.append(Histogram()) }
        windows[window].record(nanoseconds, times: times)
    }

    /// Returns the windows that begin and end within `time`; throws without one.
    func wholeWindows(in time: Range<UInt64>) throws -> [Histogram] {
        let found = windows.indices.filter { number in
            let begin = start + UInt64(number) * Self.windowNanoseconds
            return begin >= time.lowerBound && begin + Self.windowNanoseconds <= time.upperBound
        }
        try WorkloadFailure.require(
            !found.isEmpty,
            "fleet: no window of hits lies within \(time.count / 1_000_000) ms"
        )
        return found.map { windows[$0] }
    }
}
