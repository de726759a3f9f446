import Platform
import Testing

/// Durations as the numbers that limits count.
@Suite struct DurationTests {
    @Test(
        arguments: [
            (.zero, 0), (.seconds(-1), 0), (.nanoseconds(1), 1),
            // A part of a nanosecond is dropped.
            (Duration(secondsComponent: 1, attosecondsComponent: 999_999_999), 1_000_000_000),
            (.milliseconds(2_500), 2_500_000_000),
            (.seconds(1_000_000_000), 1_000_000_000_000_000_000),
            // The sum of several limits stays in range.
            (.seconds(Int64.max), 1_000_000_000_000_000_000),
        ] as [(Duration, UInt64)]
    )
    func nanosecondsAreWholeAndBounded(_ duration: Duration, _ nanoseconds: UInt64) {
        #expect(duration.nanoseconds == nanoseconds)
    }
}
