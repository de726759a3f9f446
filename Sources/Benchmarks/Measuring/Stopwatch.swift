import Platform

/// The cost of reading the clock, which is subtracted from operations that are timed singly.
package enum Stopwatch {
    /// The median cost of one reading of the clock, in nanoseconds.
    package static let readingNanoseconds: UInt64 = {
        var histogram = Histogram()
        for _ in 0..<20_000 {
            let start = monotonicNanoseconds()
            histogram.record(monotonicNanoseconds() &- start)
        }
        return histogram.percentile(0.5)
    }()

    /// The processor time of the calling thread, in nanoseconds.
    static var threadNanoseconds: UInt64 { nanoseconds(CLOCK_THREAD_CPUTIME_ID) }

    /// The processor time of this process, in nanoseconds.
    static var processNanoseconds: UInt64 { nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

    private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    /// `end - start` without the cost of reading the clock.
    package static func elapsed(from start: UInt64, to end: UInt64) -> UInt64 {
        let raw = end &- start
        return raw > readingNanoseconds ? raw - readingNanoseconds : 0
    }
}

/// A fixed piece of work that shows how fast the machine is at the moment.
///
/// Half of it is arithmetic and half dependent loads over 8 MiB, so that the same causes slow down
/// the probe and a cache. A difference between two runs counts only if it exceeds the drift that
/// the probe measured between them.
package final class SpeedProbe {
    private var links: [UInt32]

    package init() {
        var random = SplitMix(state: 7)
        let count = 1 << 21
        var order = [UInt32](0..<UInt32(count))
        order.shuffle(using: &random)
        links = [UInt32](repeating: 0, count: count)
        for index in 0..<count { links[Int(order[index])] = order[(index + 1) % count] }
    }

    /// The nanoseconds of the fastest of three passes, so that an interrupt does not count.
    package func measure() -> Double { (0..<3).map { _ in pass() }.min() ?? 0 }

    private func pass() -> Double {
        let start = monotonicNanoseconds()
        var position: UInt32 = 0
        var mixed: UInt64 = 1
        for _ in 0..<20_000 {
            position = links[Int(position)]
            for _ in 0..<8 { mixed = (mixed ^ UInt64(position)) &* 0x9E37_79B9_7F4A_7C15 }
        }
        let elapsed = monotonicNanoseconds() - start
        return mixed == 0 ? 0 : Double(elapsed)
    }
}

private struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        let mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        return mixed ^ (mixed >> 27)
    }
}
