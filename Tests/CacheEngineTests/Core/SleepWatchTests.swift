import Testing

@testable import CacheEngine

@Suite struct SleepWatchTests {
    @Test func suspendCountsWithinASecondOfWaking() {
        let watch = SleepWatch()
        var slept: UInt64 = 3_600_000_000_000
        var looks = 0
        func nanoseconds(at awake: UInt64) -> UInt64 {
            watch.nanoseconds(at: awake) {
                looks += 1
                return slept
            }
        }
        // The first look includes the sleep before the process began.
        #expect(nanoseconds(at: 5) == slept)
        slept += 40
        #expect(nanoseconds(at: 6) == slept - 40)
        #expect(looks == 1)
        slept += 7_200_000_000_000
        _ = nanoseconds(at: 1_000_000_004)
        #expect(looks == 1)
        #expect(nanoseconds(at: 1_000_000_005) == slept)
        #expect(looks == 2)
        let before = slept
        slept -= 1_000_000_000
        #expect(nanoseconds(at: 3_000_000_000) == before, "never back")
    }

    @Test func systemClockAgreesWithTheSystem() {
        let clock = SystemClock()
        let first = clock.nowSeconds
        #expect(abs(first - SystemClock().nowSeconds) <= 1)
        #expect(clock.nowSeconds >= first)
    }
}
