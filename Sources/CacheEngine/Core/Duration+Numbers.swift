/// Durations as the numbers that rules and machines take.
extension Duration {
    /// A duration of `seconds`, at least zero and at most 1,000,000,000 seconds.
    package init(clampingSeconds seconds: Double) {
        self = .seconds(seconds.isNaN ? 0 : min(max(0, seconds), 1e9))
    }

    /// The duration in seconds.
    package var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// The full seconds of the duration, rounded down, at most `Int.max`.
    package var wholeSeconds: Int { Int(clamping: components.seconds) }
}
