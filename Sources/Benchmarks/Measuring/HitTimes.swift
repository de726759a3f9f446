import CacheTestSupport

/// The times of hits that one thread makes one after the other.
///
/// A hit that waits delays the hits after it. If each one counted once, a long wait would be one
/// slow hit among fast ones ("coordinated omission"). So a hit counts as often as usual hits would
/// have been made in its time.
///
/// A thread whose processor the system gives to others waits for nothing in the cache: this time is
/// left out of a hit that has not waited.
struct HitTimes {
    /// Up to this time nothing is left out: to read the use of a thread takes longer than a hit.
    private static let wholeNanosecondsMax: UInt64 = 20_000

    private(set) var histogram = Histogram()
    /// The time from one usual hit to the next.
    private let periodNanoseconds: UInt64
    private var last: ThreadUse

    /// Creates no times yet, on the thread that makes the hits.
    ///
    /// `usualNanoseconds` is the time of a hit that nothing delays; without it each hit counts
    /// once.
    init(usualNanoseconds: UInt64? = nil, _ use: ThreadUse = .now) {
        periodNanoseconds = usualNanoseconds.map { $0 + 2 * Stopwatch.readingNanoseconds } ?? .max
        last = use
    }

    mutating func record(_ nanoseconds: UInt64, _ use: @autoclosure () -> ThreadUse = .now) {
        var own = nanoseconds
        if nanoseconds > Self.wholeNanosecondsMax {
            let use = use()
            own -= min(own, use.lostNanoseconds(since: last))
            last = use
        }
        histogram.record(own, times: max(1, own / max(1, periodNanoseconds)))
    }
}
