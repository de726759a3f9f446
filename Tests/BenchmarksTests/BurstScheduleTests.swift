import Testing

@testable import Benchmarks

@Suite struct BurstScheduleTests {
    private static let start: UInt64 = 7_000_000_123
    private static let hitNanoseconds: UInt64 = 240
    private static let second: UInt64 = 1_000_000_000

    /// Plays two seconds, in which the first hit of each burst blocks for some time.
    private static func played(blocked: UInt64) -> BurstSchedule {
        var bursts = BurstSchedule(start: start)
        var now = start
        while now < start + 2 * second {
            now = max(now, bursts.due)
            for hit in 0..<BurstSchedule.hitsOfBurst {
                let time = hit == 0 ? hitNanoseconds + blocked : hitNanoseconds
                bursts.record(time)
                now += time
            }
            bursts.end(at: now)
        }
        return bursts
    }

    /// Of the bursts that become due while one blocks, the first one waits the longest.
    ///
    /// It is more than one in a hundred, so its time is the p99.
    @Test(arguments: [
        (UInt64(0), UInt64(240)), (25_000_000, 22_980_000), (100_000_000, 97_980_000),
    ])
    func blocksCountForTheHitsThatWereDue(blocked: UInt64, p99: UInt64) throws {
        let bursts = Self.played(blocked: blocked)
        let windows = try bursts.wholeWindows(in: Self.start..<Self.start + 2 * Self.second)
        #expect(windows.count == 8)
        for window in windows {
            let found = Double(window.percentile(0.99))
            #expect(abs(found - Double(p99)) <= Double(p99) * 0.01, "\(found)")
        }
    }

    /// A single block of 300 ms begins in the first window and ends in the second one.
    @Test func timesBelongToTheWindowInWhichTheyWereDue() throws {
        var bursts = BurstSchedule(start: 0)
        for number in UInt64(0)..<300 {
            guard bursts.due <= number * BurstSchedule.periodNanoseconds else { continue }
            let isBlocked = number == 40
            bursts.record(isBlocked ? 300_000_000 : 200)
            bursts.end(at: bursts.due + (isBlocked ? 300_000_000 : 200))
        }
        let windows = try bursts.wholeWindows(in: 0..<750_000_000)
        #expect(windows.map(\.max) == [300_000_000, 150_000_000, 200])
        // 40 hits, the one that blocks, and 59 bursts.
        #expect(windows[0].count == 41 + 59 * UInt64(BurstSchedule.hitsOfBurst))
    }

    /// A timer is late by less than a period; a load without a processor is late by more.
    @Test func burstThatCannotBeginWaits() throws {
        var bursts = BurstSchedule(start: 0)
        let canBeginInTime = bursts.canBegin(at: 2_400_000)
        #expect(canBeginInTime)
        let canBeginTooLate = bursts.canBegin(at: 250_000_001)
        #expect(!canBeginTooLate)
        #expect(bursts.due == 252_500_000)
        let window = try bursts.wholeWindows(in: 0..<250_000_000)[0]
        #expect(window.max == 250_000_001)
        #expect(window.count == 100 * UInt64(BurstSchedule.hitsOfBurst))
    }

    @Test func partOfAWindowIsNoFigure() throws {
        let bursts = Self.played(blocked: 0)
        let start = Self.start
        let width = BurstSchedule.windowNanoseconds
        #expect(try bursts.wholeWindows(in: start..<start + width).count == 1)
        #expect(throws: WorkloadFailure.self) {
            try bursts.wholeWindows(in: start..<start + width - 1)
        }
        #expect(throws: WorkloadFailure.self) {
            try bursts.wholeWindows(in: start + 1..<start + 2 * width - 1)
        }
    }
}
