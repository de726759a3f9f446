import RedisClient
import Testing

@Suite struct CircuitBreakerTests {
    private enum Event: Sendable {
        case failed
        case hung
        case succeeded
        case probeSucceeded
        case time
    }

    /// The times are in milliseconds; a breaker of 3 failures opens for 100, at most 500.
    private static func run(_ events: [(UInt64, Event)]) -> CircuitBreaker.State {
        var breaker = CircuitBreaker(
            .init(
                failureCountMax: 3,
                openLimitMin: .milliseconds(100),
                openLimitMax: .milliseconds(500)
            )
        )
        for (moment, event) in events {
            let now = moment * 1_000_000
            switch event {
            case .failed: breaker.failed(now: now)
            case .hung: breaker.hung(now: now)
            case .succeeded: breaker.succeeded()
            case .probeSucceeded: breaker.probeSucceeded()
            case .time: _ = breaker.timePassed(now: now)
            }
        }
        return breaker.state
    }

    private static func open(_ moment: UInt64) -> CircuitBreaker.State {
        .open(until: moment * 1_000_000)
    }

    @Test func failuresInARowOpenIt() {
        #expect(Self.run([(0, .failed), (1, .failed)]) == .closed)
        #expect(Self.run([(0, .failed), (1, .failed), (2, .failed)]) == Self.open(102))
    }

    @Test func replyEndsTheRow() {
        let events: [(UInt64, Event)] = [
            (0, .failed), (1, .failed), (2, .succeeded), (3, .failed), (4, .failed),
        ]
        #expect(Self.run(events) == .closed)
        #expect(Self.run(events + [(5, .failed)]) == Self.open(105))
    }

    @Test func hungServerOpensItAtOnce() {
        #expect(Self.run([(7, .hung)]) == Self.open(107))
    }

    @Test func nothingChangesWhileItIsOpen() {
        let events: [(UInt64, Event)] = [
            (0, .hung), (1, .failed), (2, .hung), (3, .succeeded), (4, .probeSucceeded),
            (99, .time),
        ]
        #expect(Self.run(events) == Self.open(100))
    }

    @Test func probeFollowsTheTime() {
        #expect(Self.run([(0, .hung), (100, .time)]) == .probing)
        #expect(Self.run([(0, .hung), (100, .time), (105, .probeSucceeded)]) == .closed)
    }

    @Test func failedProbesDoubleTheTimeUpToTheLimit() {
        var events: [(UInt64, Event)] = [(0, .hung)]
        var moment: UInt64 = 100
        for length: UInt64 in [200, 400, 500, 500] {
            events += [(moment, .time), (moment, .failed)]
            #expect(Self.run(events) == Self.open(moment + length))
            moment += length
        }
    }

    @Test func oneFailureAfterAProbeOpensItForTwiceAsLong() {
        let events: [(UInt64, Event)] = [
            (0, .hung), (100, .time), (101, .probeSucceeded), (102, .failed),
        ]
        #expect(Self.run(events) == Self.open(302))
    }

    @Test func replyAfterAProbeForgetsAllFailures() {
        let events: [(UInt64, Event)] = [
            (0, .hung), (100, .time), (101, .probeSucceeded), (102, .succeeded), (103, .failed),
            (104, .failed),
        ]
        #expect(Self.run(events) == .closed)
        #expect(Self.run(events + [(105, .failed)]) == Self.open(205))
    }

    @Test func nextMomentIsThatOfTheProbe() {
        var breaker = CircuitBreaker()
        #expect(breaker.nextMoment == .max)
        breaker.hung(now: 5)
        #expect(breaker.nextMoment == 250_000_005)
        let isEarly = breaker.timePassed(now: 250_000_004)
        #expect(!isEarly)
        let isDue = breaker.timePassed(now: 250_000_005)
        #expect(isDue)
        #expect(breaker.nextMoment == .max)
    }
}
