import CacheTestSupport
import Testing

@testable import Benchmarks

@Suite struct HitTimesTests {
    private static let usual: UInt64 = 10_000
    private static let long: UInt64 = 10_000_000

    /// The thread began at zero; `lost` of the time it had no processor.
    private static func use(after nanoseconds: UInt64, lost: UInt64, waits: Int?) -> ThreadUse {
        ThreadUse(
            clockNanoseconds: nanoseconds,
            processorNanoseconds: nanoseconds - lost,
            waits: waits
        )
    }

    /// 99 usual hits, and a long one in which the thread had no processor for most of the time.
    private static func times(usual: UInt64?, waits: Int?, then: Int?) -> Histogram {
        var times = HitTimes(usualNanoseconds: usual, use(after: 0, lost: 0, waits: waits))
        for _ in 0..<99 { times.record(Self.usual) }
        let passed = 99 * Self.usual + long
        times.record(long, use(after: passed, lost: long - 50_000, waits: then))
        return times.histogram
    }

    /// Some thousand hits would have been made meanwhile, if nothing had been waited for.
    @Test(arguments: [(0, 1), (nil, nil)] as [(Int?, Int?)])
    func waitCountsForTheHitsThatItDelays(waits: Int?, then: Int?) {
        let times = Self.times(usual: Self.usual, waits: waits, then: then)
        #expect(times.max == Self.long)
        #expect(times.percentile(0.5) >= Self.long * 99 / 100)
        #expect(times.count <= 99 + Self.long / Self.usual)
    }

    @Test func interruptionIsNotTheHitsOwn() {
        let times = Self.times(usual: Self.usual, waits: 7, then: 7)
        #expect(times.max == 50_000)
        #expect(times.percentile(0.5) < 2 * Self.usual)
    }

    @Test func withoutAUsualTimeEachHitCountsOnce() {
        #expect(Self.times(usual: nil, waits: 0, then: 1).count == 100)
    }

    @Test func useOfAThreadGrows() {
        let start = ThreadUse.now
        while ThreadUse.now.processorNanoseconds == start.processorNanoseconds {}
        #expect(ThreadUse.now.clockNanoseconds > start.clockNanoseconds)
    }
}
