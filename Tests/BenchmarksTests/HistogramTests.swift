import Benchmarks
import CacheTestSupport
import Testing

@Suite struct HistogramTests {
    @Test(arguments: UInt64(0)..<64)
    func percentilesAreWithinOnePercentOfASortedList(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var histogram = Histogram()
        var values: [UInt64] = []
        for _ in 0..<2_000 {
            // The values cover every octave of a 64-bit number.
            let value = random.next() >> UInt64.random(in: 0..<64, using: &random)
            values.append(value)
            histogram.record(value)
        }
        values.sort()
        for share in [0.01, 0.25, 0.5, 0.9, 0.99, 0.999] {
            let exact = Double(values[Int((share * 2_000).rounded(.up)) - 1])
            let found = Double(histogram.percentile(share))
            #expect(abs(found - exact) <= exact * 0.01, "\(share): \(found) for \(exact)")
        }
        #expect(histogram.max == values.last)
        #expect(histogram.percentile(1) == values.last)
    }

    @Test(arguments: [0, 1, 127, 128, 255, 256, 257, 511, 512, 1 << 20, 1 << 63, UInt64.max])
    func aSingleValueIsFoundAtEveryPercentile(value: UInt64) {
        var histogram = Histogram()
        histogram.record(value)
        for share in [0.0, 0.5, 1] {
            #expect(histogram.percentile(share) == value)
        }
        #expect(histogram.count == 1)
    }

    @Test func mergingIsTheSameAsRecordingEverythingInOne() {
        var random = SeededRandom(seed: 5)
        var parts = [Histogram(), Histogram(), Histogram()]
        var whole = Histogram()
        for index in 0..<3_000 {
            let value = random.next() >> 40
            parts[index % 3].record(value)
            whole.record(value)
        }
        var merged = parts[0]
        merged.merge(parts[1])
        merged.merge(parts[2])
        #expect(merged.percentiles == whole.percentiles)
        #expect(merged.count == whole.count)
    }

    @Test func anEmptyHistogramSaysNothing() {
        let histogram = Histogram()
        #expect(histogram.percentile(0.5) == 0)
    }

    #if ENGINE_CHECKS
        @Test func theInvariantsHoldAfterRecordingAndMerging() {
            var histogram = Histogram()
            histogram.record(.max, times: 4)
            var other = Histogram()
            other.record(3)
            histogram.merge(other)
            histogram.checkInvariants()
        }
    #endif
}
