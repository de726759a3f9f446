/// Durations and seconds as the nanoseconds that clocks and limits count.
extension Duration {
    /// Whole nanoseconds: 0 if negative, and 1e18 at most, so that sums stay in range.
    package var nanoseconds: UInt64 {
        guard self > .zero else { return 0 }
        return UInt64(Swift.min(attoseconds / 1_000_000_000, 1_000_000_000_000_000_000))
    }
}

extension UInt64 {
    /// The nanoseconds in that many seconds: 0 if negative or no number, and 1e9 seconds at most, so
    /// that sums stay in range.
    package init(nanosecondsIn seconds: Double) {
        self = UInt64(Swift.max(0, Swift.min(seconds, 1e9)) * 1e9)
    }
}
