import CacheEngine
import CacheTestSupport
import Testing

@testable import CacheEngineRedis

/// The rule that decides whether a shared record may be used.
@Suite struct PurgeHorizonTests {
    private static let log = [UInt8](repeating: 1, count: 16)
    private static let key = SharedKey(bytes: [2, 2], resource: [2])

    private static func record(
        at position: UInt64,
        published: Int64 = 100,
        log: [UInt8] = log,
        tags: [String] = ["a"]
    ) throws -> SharedRecord {
        SharedRecord(
            Samples.entry(tags: tags),
            position: position,
            publishedMilliseconds: published,
            storedSeconds: 0,
            log: log
        )
    }

    @Test func nothingIsUsedBeforeThePurgesAreKnown() throws {
        var horizon = PurgeHorizon()
        #expect(!horizon.permits(try Self.record(at: 9), of: Self.key))
        horizon.begin(log: Self.log, floor: 5, [])
        #expect(horizon.permits(try Self.record(at: 5), of: Self.key))
        #expect(!horizon.permits(try Self.record(at: 4), of: Self.key))
        let other = [UInt8](repeating: 3, count: 16)
        #expect(!horizon.permits(try Self.record(at: 5, log: other), of: Self.key))
        horizon.end()
        #expect(!horizon.permits(try Self.record(at: 9), of: Self.key))
    }

    @Test(arguments: [SharedPurge.Scope.key([2]), .tag("a"), .everything])
    func laterPurgeCoversTheRecord(_ scope: SharedPurge.Scope) throws {
        var horizon = PurgeHorizon()
        horizon.begin(log: Self.log, floor: 0, [])
        horizon.note(scope, at: 7)
        #expect(!horizon.permits(try Self.record(at: 6), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 7), of: Self.key))
        horizon.note(scope, at: PurgeHorizon.pending)
        #expect(!horizon.permits(try Self.record(at: 1 << 60), of: Self.key))
        // A log that is read anew does not confirm the purge.
        horizon.begin(log: Self.log, floor: 0, [(scope, 7)])
        #expect(!horizon.permits(try Self.record(at: 1 << 60), of: Self.key))
        horizon.confirm(scope, at: 9)
        #expect(!horizon.permits(try Self.record(at: 8), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 9), of: Self.key))
    }

    @Test func otherPurgesDoNotConcernTheRecord() throws {
        var horizon = PurgeHorizon()
        horizon.begin(log: Self.log, floor: 0, [(.tag("b"), 9), (.key([2, 2]), 9)])
        #expect(horizon.permits(try Self.record(at: 1), of: Self.key))
    }

    @Test func markHidesWhatWasPublishedByThen() throws {
        var horizon = PurgeHorizon()
        horizon.begin(log: Self.log, floor: 0, [])
        horizon.mark(Self.key.bytes, until: 100)
        #expect(!horizon.permits(try Self.record(at: 1), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 1, published: 101), of: Self.key))
        horizon.mark(Self.key.bytes, until: 200)
        horizon.unmark(Self.key.bytes, from: 100)
        #expect(!horizon.permits(try Self.record(at: 1, published: 101), of: Self.key))
        horizon.unmark(Self.key.bytes, from: 200)
        #expect(horizon.permits(try Self.record(at: 1), of: Self.key))
    }

    /// The store may confirm the removal while the record of before is on its way.
    @Test func markCountsFromTheQuestionOn() throws {
        var horizon = PurgeHorizon()
        horizon.begin(log: Self.log, floor: 0, [])
        horizon.mark(Self.key.bytes, until: 100)
        let mark = horizon.mark(of: Self.key.bytes)
        horizon.unmark(Self.key.bytes, from: 100)
        #expect(!horizon.permits(try Self.record(at: 1), of: Self.key, mark: mark))
        #expect(horizon.permits(try Self.record(at: 1), of: Self.key))
    }

    /// However few purges and marks are remembered, no record is used that one of them covers.
    @Test func forgottenPurgesStillCover() throws {
        for seed in 0..<200 {
            var random = SeededRandom(seed: UInt64(seed))
            var horizon = PurgeHorizon(countMax: 4)
            horizon.begin(log: Self.log, floor: 0, [])
            var tags: [String: UInt64] = [:]
            var keys: [UInt8: Int64] = [:]
            for step in 1...60 {
                if Bool.random(using: &random) {
                    let tag = "t\(Int.random(in: 0..<8, using: &random))"
                    tags[tag] = UInt64(step)
                    horizon.note(.tag(tag), at: UInt64(step))
                } else {
                    let key = UInt8.random(in: 0..<8, using: &random)
                    keys[key] = Int64(step)
                    horizon.mark([key], until: Int64(step))
                }
                let tag = "t\(Int.random(in: 0..<8, using: &random))"
                let key = UInt8.random(in: 0..<8, using: &random)
                let (position, published) = (
                    UInt64.random(in: 0...60, using: &random),
                    Int64.random(in: 0...60, using: &random)
                )
                let record = try Self.record(at: position, published: published, tags: [tag])
                guard horizon.permits(record, of: SharedKey(bytes: [key], resource: [99])) else {
                    continue
                }
                #expect(position >= tags[tag] ?? 0, "seed \(seed)")
                #expect(published > keys[key] ?? .min, "seed \(seed)")
            }
        }
    }
}

@Suite struct FleetTimeTests {
    @Test func medianOfTheLastSamplesCounts() {
        let time = FleetTime()
        #expect(time.now(ownMilliseconds: 0) == nil)
        for offset in [90_000, 90_010, 99_999, 90_020, 90_005] as [Int64] {
            time.note(serverMilliseconds: 1_000 + offset, ownMilliseconds: 1_000)
        }
        #expect(time.now(ownMilliseconds: 5_000) == 95_010)
        for _ in 0..<5 { time.note(serverMilliseconds: 0, ownMilliseconds: 1_000) }
        #expect(time.now(ownMilliseconds: 5_000) == 4_000)
    }
}
