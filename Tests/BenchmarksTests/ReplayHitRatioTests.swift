import Benchmarks
import CacheTestSupport
import Testing

/// Small traces through the real memory, compared with the best possible policy.
///
/// The recorded traces are too large for a test; these have the same traits. The number of shards
/// must make no difference.
@Suite struct ReplayHitRatioTests {
    static let shardCounts = [1, 4, 16]

    /// A policy that evicts the oldest entry first always misses in such a loop.
    @Test(arguments: shardCounts) func aLoopKeepsWhatFits(shardCount: Int) {
        var trace = RequestTrace()
        for _ in 0..<40 { for object in UInt64(0)..<1_000 { trace.append(object) } }
        #expect(Self.hitRatio(trace, 0.2, shardCount) > 0.2 - 0.03)
    }

    /// Entries of a tenth of the memory are judged at once, and must be able to earn a place.
    @Test(arguments: shardCounts) func aLoopOfLargeEntriesKeepsWhatFits(shardCount: Int) {
        var trace = RequestTrace()
        for _ in 0..<100 { for object in UInt64(0)..<100 { trace.append(object) } }
        #expect(Self.hitRatio(trace, 0.4, shardCount) > 0.4 - 0.07)
    }

    /// Entries that are requested repeatedly outlive those that are requested once.
    @Test(arguments: shardCounts) func aScanDoesNotWashOutWhatIsUsed(shardCount: Int) {
        var trace = RequestTrace()
        var random = SeededRandom(seed: 7)
        for step in UInt64(0)..<40_000 {
            trace.append(step % 2 == 0 ? random.next() % 150 : 1_000 + step)
        }
        // Half of the requests go to 150 entries, which fit.
        let fraction = 200 / Double(trace.objectCount)
        #expect(Self.hitRatio(trace, fraction, shardCount) > 0.5 - 0.03)
    }

    /// A few popular entries arrive when the memory is full of others.
    @Test(arguments: shardCounts) func popularNewEntriesAreAdmitted(shardCount: Int) {
        var trace = RequestTrace()
        var random = SeededRandom(seed: 8)
        for object in UInt64(0)..<3_000 { trace.append(1_000 + object) }
        for step in 0..<60_000 {
            trace.append(step % 2 == 0 ? random.next() % 60 : 1_000 + random.next() % 10_000)
        }
        let fraction = 80 / Double(trace.objectCount)
        #expect(Self.hitRatio(trace, fraction, shardCount) > 0.5 * 60 / 63 - 0.05)
    }

    /// Popular entries make way: every object is requested three times in a row, then never again.
    @Test(arguments: shardCounts) func popularityThatMovesIsFollowed(shardCount: Int) {
        var trace = RequestTrace()
        for first in UInt64(0)..<20_000 {
            for object in [first, first &- 20, first &- 40] where object < 20_000 {
                trace.append(object)
            }
        }
        #expect(Self.hitRatio(trace, 0.05, shardCount) > 2.0 / 3 - 0.05)
    }

    /// Objects of the day are requested often for a short time; others now and then for ever.
    ///
    /// By frequency the objects of the day would stay long after their last request. By the rates
    /// they leave when no entry of their frequency and age is requested again.
    @Test(arguments: shardCounts) func whatIsOverLeavesThoughItWasPopular(shardCount: Int) {
        var trace = RequestTrace()
        var random = SeededRandom(seed: 9)
        for step in UInt64(0)..<200_000 {
            if step % 2 == 0 {
                trace.append(random.next() % 3_000)
            } else {
                // A new one each 24 steps; each is requested a dozen times.
                trace.append(10_000 + step / 24 - random.next() % 12)
            }
        }
        let fraction = 1_500 / Double(trace.objectCount)
        #expect(Self.hitRatio(trace, fraction, shardCount) > 0.6)
    }

    private static func hitRatio(_ trace: RequestTrace, _ fraction: Double, _ shards: Int) -> Double
    {
        let options = TraceReplay.Options(
            capacity: .fraction(fraction),
            sizing: .unit,
            shardCount: shards
        )
        return TraceReplay(trace).run(options).requestHitRatio
    }
}

extension RequestTrace {
    fileprivate mutating func append(_ object: UInt64) { append(object: object, sizeBytes: 1) }
}
