extension UInt64 {
    /// The nanoseconds in that many seconds: 0 if negative, and 1e9 seconds at most.
    init(nanosecondsIn seconds: Double) {
        self = UInt64(Swift.max(0, Swift.min(seconds, 1e9)) * 1e9)
    }
}
