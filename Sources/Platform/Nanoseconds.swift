/// Durations and seconds as the nanoseconds that clocks and limits count.
extension Duration {
    /// Whole nanoseconds, from 0 to 2^63 - 1.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 9_000_000_000 else { return UInt64(Int64.max) }
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds) / 1_000_000_000
    }
}

extension UInt64 {
    /// The nanoseconds in that many seconds: 0 if negative or no number, and 1e9 seconds at most, so
    /// that sums stay in range.
    package init(nanosecondsIn seconds: Double) {
        self = UInt64(Swift.max(0, Swift.min(seconds, 1e9)) * 1e9)
    }
}
