import Benchmarks
import CacheTestSupport
import Synchronization
import Testing

@Suite struct ArrivalScheduleTests {
    @Test func arrivalsComeAtTheRateAskedFor() {
        var random = SeededRandom(seed: 9)
        let schedule = ArrivalSchedule(ratePerSecond: 50_000, durationSeconds: 2, from: &random)
        #expect(abs(Double(schedule.arrivals.count) - 100_000) < 5 * 316)
        #expect(schedule.arrivals.allSatisfy { $0 < 2_000_000_000 })
        #expect(zip(schedule.arrivals, schedule.arrivals.dropFirst()).allSatisfy { $0 <= $1 })
    }

    /// A clock that only advances when it is read or work is done.
    private final class HandClock: Sendable {
        private let now = Mutex<UInt64>(1_000)

        func advance(by nanoseconds: UInt64) { now.withLock { $0 += nanoseconds } }

        @Sendable func read() -> UInt64 {
            now.withLock { now in
                now += 1_000
                return now
            }
        }
    }

    @Test func waitingAfterASlowResponseCounts() async {
        var random = SeededRandom(seed: 2)
        let schedule = ArrivalSchedule(ratePerSecond: 1_000, durationSeconds: 1, from: &random)
        let clock = HandClock()
        // Each response takes twice as long as the gap between two arrivals.
        let histogram = await schedule.play(clock: clock.read) { _ in
            clock.advance(by: 2_000_000)
        }
        #expect(histogram.count == UInt64(schedule.arrivals.count))
        // The last of a thousand requests waits for about five hundred others.
        #expect(histogram.max > 800_000_000)
        #expect(histogram.percentile(0.5) > 400_000_000)
    }

    @Test func fastResponsesCountNoWaiting() async {
        var random = SeededRandom(seed: 2)
        let schedule = ArrivalSchedule(ratePerSecond: 1_000, durationSeconds: 0.01, from: &random)
        let clock = HandClock()
        let histogram = await schedule.play(clock: clock.read) { _ in clock.advance(by: 10) }
        #expect(histogram.percentile(0.9) < 4_000)
    }

    @Test func everyArrivalIsServedOnceAndInOrder() async {
        var random = SeededRandom(seed: 8)
        let schedule = ArrivalSchedule(ratePerSecond: 500, durationSeconds: 0.1, from: &random)
        let clock = HandClock()
        var served: [Int] = []
        _ = await schedule.play(clock: clock.read) { served.append($0) }
        #expect(served == Array(schedule.arrivals.indices))
    }
}
