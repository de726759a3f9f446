/// Counts of values over the whole range of a 64-bit number, with an error below 1 %.
///
/// The buckets are log-linear as in HdrHistogram (https://hdrhistogram.org): each value below 256
/// has a bucket of its own, and each octave above is divided into 128 equal buckets. Recording a
/// value writes one counter and allocates nothing.
///
/// Invariants:
/// 1. `count` is the sum of `buckets`.
/// 2. If `count` is zero, `max` is zero.
package struct Histogram: Hashable, Sendable {
    private static let stepBits = 7
    private static let stepCount = 1 << stepBits
    private static let bucketCount = (64 - stepBits + 1) << stepBits

    private var buckets = [UInt64](repeating: 0, count: bucketCount)
    /// The number of recorded values.
    package private(set) var count: UInt64 = 0
    /// The largest value recorded, exactly.
    package private(set) var max: UInt64 = 0

    package init() {}

    package mutating func record(_ value: UInt64) { record(value, times: 1) }

    package mutating func record(_ value: UInt64, times: UInt64) {
        guard times > 0 else { return }
        buckets[Self.bucket(of: value)] &+= times
        count &+= times
        if value > max { max = value }
    }

    package mutating func merge(_ other: Histogram) {
        for index in 0..<Self.bucketCount { buckets[index] &+= other.buckets[index] }
        count &+= other.count
        max = Swift.max(max, other.max)
    }

    /// The smallest value such that at least `share` (0 to 1) of the recorded values do not exceed
    /// it.
    package func percentile(_ share: Double) -> UInt64 {
        guard count > 0 else { return 0 }
        let wanted = Swift.max(1, UInt64((share * Double(count)).rounded(.up)))
        if wanted >= count { return max }
        var seen: UInt64 = 0
        for (index, inBucket) in buckets.enumerated() {
            seen &+= inBucket
            if seen >= wanted { return Swift.min(max, Self.middle(of: index)) }
        }
        return max
    }

    /// The percentiles that every report shows.
    package var percentiles: Percentiles {
        Percentiles(
            p50: Double(percentile(0.5)),
            p90: Double(percentile(0.9)),
            p99: Double(percentile(0.99)),
            p999: Double(percentile(0.999)),
            max: Double(max)
        )
    }

    private static func bucket(of value: UInt64) -> Int {
        let exponent = 63 - (value | 1).leadingZeroBitCount
        guard exponent > stepBits else { return Int(value) }
        let shift = exponent - stepBits
        return shift << stepBits + Int(value >> UInt64(shift))
    }

    /// The middle of a bucket: at most half a bucket away from any value in it.
    private static func middle(of index: Int) -> UInt64 {
        guard index >= 2 * stepCount else { return UInt64(index) }
        let shift = UInt64(index >> stepBits - 1)
        let low = UInt64(index & (stepCount - 1) | stepCount) << shift
        return low + (1 << shift) / 2
    }

    #if ENGINE_CHECKS
        package func checkInvariants() {
            precondition(buckets.reduce(0, &+) == count)
            precondition(count > 0 || max == 0)
        }
    #endif
}

/// Five points of a latency distribution, in nanoseconds.
package struct Percentiles: Hashable, Codable, Sendable {
    private enum CodingKeys: String, CodingKey {
        case p50, p90, p99, max
        case p999 = "p99.9"
    }

    package var p50: Double
    package var p90: Double
    package var p99: Double
    package var p999: Double
    package var max: Double

    package init(p50: Double, p90: Double, p99: Double, p999: Double, max: Double) {
        self.p50 = p50
        self.p90 = p90
        self.p99 = p99
        self.p999 = p999
        self.max = max
    }

    /// The names used in the JSON, with their values.
    package var named: [(name: String, value: Double)] {
        [("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("max", max)]
    }
}
