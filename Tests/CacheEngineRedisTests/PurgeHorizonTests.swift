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
    }

    /// A failover may have lost a purge of this machine, and the new log does not have it yet.
    @Test func recordOfALaterEpochIsNotUsed() throws {
        var horizon = PurgeHorizon()
        horizon.begin(log: Self.log, floor: 0, [])
        horizon.note(.everything, at: FleetPosition(2, 9).rawValue)
        let record = try Self.record(at: FleetPosition(3, 1).rawValue)
        #expect(!horizon.permits(record, of: Self.key, epoch: 2))
        #expect(horizon.permits(record, of: Self.key, epoch: 3))
    }

    /// A purge of this machine covers every record until the log gives it a place, and each purge
    /// of its scope keeps its place, also another machine's.
    @Test(arguments: [SharedPurge.Scope.key([2]), .tag("a"), .everything])
    func purgeWithoutAPlaceCoversEveryRecord(_ scope: SharedPurge.Scope) throws {
        var horizon = PurgeHorizon()
        horizon.begin(log: Self.log, floor: 0, [])
        horizon.announce(scope)
        horizon.announce(scope)
        #expect(!horizon.permits(try Self.record(at: 1 << 60), of: Self.key))
        // A purge of another machine comes later, and is read before the reply to the first.
        horizon.note(scope, at: 50)
        horizon.confirm(scope, at: 48, horizon.nextNumber())
        #expect(!horizon.permits(try Self.record(at: 1 << 60), of: Self.key))
        horizon.confirm(scope, at: 49, horizon.nextNumber())
        #expect(!horizon.permits(try Self.record(at: 49), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 50), of: Self.key))
        horizon.announce(scope)
        horizon.fail(scope, horizon.nextNumber())
        // A log that is read anew does not confirm the purge.
        horizon.end()
        horizon.begin(log: Self.log, floor: 0, [(scope: scope, position: 7)])
        #expect(!horizon.permits(try Self.record(at: 1 << 60), of: Self.key))
        horizon.announce(scope)
        horizon.confirm(scope, at: 60, horizon.nextNumber())
        #expect(horizon.permits(try Self.record(at: 60), of: Self.key))
    }

    /// A record that was fetched behind the end of the log is newer than a purge from before it.
    @Test(arguments: [SharedPurge.Scope.key([2]), .tag("a"), .everything])
    func failedPurgeHoldsUpToTheEndOfTheLog(_ scope: SharedPurge.Scope) throws {
        var horizon = PurgeHorizon()
        func isUsed(_ epoch: UInt64, _ number: UInt64) throws -> Bool {
            let record = try Self.record(at: FleetPosition(epoch, number).rawValue)
            return horizon.permits(record, of: Self.key)
        }
        horizon.begin(log: Self.log, floor: 0, [])
        let asked = horizon.numbers
        horizon.announce(scope)
        horizon.fail(scope, horizon.nextNumber())
        // The question was asked before the purge was sent.
        horizon.noteEnd(at: FleetPosition(1, 7), asked)
        #expect(try !isUsed(1, 8))
        horizon.noteEnd(at: FleetPosition(1, 7), horizon.numbers)
        #expect(try !isUsed(1, 7))
        #expect(try isUsed(1, 8))
        horizon.noteEnd(at: FleetPosition(1, 9), horizon.numbers)
        #expect(try isUsed(1, 8))
        // Another master may have begun its epoch before the purge.
        horizon.noteEnd(at: FleetPosition(2, 3), horizon.numbers)
        #expect(try !isUsed(2, 3))
        #expect(try isUsed(2, 4))
        // Places are forgotten at an end.
        horizon.end()
        horizon.begin(log: Self.log, floor: 0, [])
        #expect(try !isUsed(2, 9))
        horizon.noteEnd(at: FleetPosition(2, 8), horizon.numbers)
        #expect(try isUsed(2, 9))
        // The next failure has no place yet.
        horizon.announce(scope)
        horizon.fail(scope, horizon.nextNumber())
        #expect(try !isUsed(2, 9))
    }

    /// A purge that is confirmed while the log is read stays known.
    @Test func confirmedPurgeOfEverythingCoversThoseThatFailed() throws {
        var horizon = PurgeHorizon()
        horizon.begin(log: Self.log, floor: 0, [])
        horizon.announce(.tag("a"))
        horizon.fail(.tag("a"), horizon.nextNumber())
        horizon.announce(.tag("b"))
        horizon.announce(.everything)
        horizon.confirm(.everything, at: 7, horizon.nextNumber())
        #expect(!horizon.permits(try Self.record(at: 6), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 7), of: Self.key))
        // The other one is still under way.
        #expect(!horizon.permits(try Self.record(at: 7, tags: ["b"]), of: Self.key))
    }

    /// A purge is refused at once because too many wait, and an earlier one is confirmed after that.
    @Test(arguments: [SharedPurge.Scope.tag("a"), .everything])
    func earlierPurgeDoesNotConfirmOneThatFailed(_ scope: SharedPurge.Scope) throws {
        var horizon = PurgeHorizon()
        horizon.begin(log: Self.log, floor: 0, [])
        horizon.announce(scope)
        let first = horizon.nextNumber()
        horizon.announce(.tag("a"))
        horizon.fail(.tag("a"), horizon.nextNumber())
        horizon.confirm(scope, at: 7, first)
        #expect(!horizon.permits(try Self.record(at: 1 << 60), of: Self.key))
        horizon.announce(.tag("a"))
        horizon.confirm(.tag("a"), at: 8, horizon.nextNumber())
        #expect(horizon.permits(try Self.record(at: 8), of: Self.key))
    }

    /// URLs may be long, and the log keeps 65,536 purges.
    @Test func longPurgesAreJoinedBeforeTheyAreMany() throws {
        var horizon = PurgeHorizon(bytesMax: 10_000)
        horizon.begin(log: Self.log, floor: 0, [])
        let keys = (0..<9 as Range<UInt8>).map { [UInt8](repeating: $0, count: 1_000) }
        for (place, key) in keys.enumerated() {
            // One that is repeated takes no more memory.
            for _ in 0..<20 { horizon.note(.key(key), at: UInt64(place)) }
        }
        #expect(horizon.permits(try Self.record(at: 1), of: Self.key) == false)
        horizon = PurgeHorizon(bytesMax: 11_000)
        horizon.begin(log: Self.log, floor: 0, [])
        for (place, key) in keys.enumerated() {
            for _ in 0..<20 { horizon.note(.key(key), at: UInt64(place)) }
        }
        #expect(horizon.permits(try Self.record(at: 1), of: Self.key))
        horizon.note(.key([UInt8](repeating: 99, count: 1_000)), at: 9)
        #expect(!horizon.permits(try Self.record(at: 1), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 8), of: Self.key))
    }

    /// A log that is full when a machine starts leaves the newer records usable.
    @Test func oldestPurgesAreForgottenFirst() throws {
        var horizon = PurgeHorizon(countMax: 8)
        let known = (1...9 as ClosedRange<UInt64>).map { place in
            (scope: SharedPurge.Scope.tag("t\(place)"), position: place)
        }
        horizon.begin(log: Self.log, floor: 0, known)
        #expect(!horizon.permits(try Self.record(at: 1), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 5), of: Self.key))
        // The newer ones still cover their records.
        #expect(!horizon.permits(try Self.record(at: 8, tags: ["t9"]), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 9, tags: ["t9"]), of: Self.key))
        horizon = PurgeHorizon()
        let full = (1...70_000 as ClosedRange<UInt64>).map { place in
            (scope: SharedPurge.Scope.tag("tag-\(place)"), position: place)
        }
        horizon.begin(log: Self.log, floor: 0, full)
        #expect(horizon.permits(try Self.record(at: 1), of: Self.key))
    }

    @Test func tooManyFailedPurgesCoverEverything() throws {
        var horizon = PurgeHorizon(countMax: 3)
        horizon.begin(log: Self.log, floor: 0, [])
        for number in 0..<4 {
            #expect(horizon.permits(try Self.record(at: 7), of: Self.key))
            horizon.announce(.tag("x\(number)"))
            horizon.fail(.tag("x\(number)"), horizon.nextNumber())
        }
        #expect(!horizon.permits(try Self.record(at: 7), of: Self.key))
        horizon.noteEnd(at: FleetPosition(rawValue: 7), horizon.numbers)
        #expect(!horizon.permits(try Self.record(at: 7), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 8), of: Self.key))
        horizon.announce(.everything)
        horizon.confirm(.everything, at: 9, horizon.nextNumber())
        #expect(horizon.permits(try Self.record(at: 9), of: Self.key))
    }

    @Test func beginningForgetsNothing() throws {
        var horizon = PurgeHorizon()
        horizon.announce(.tag("a"))
        horizon.confirm(.tag("a"), at: 9, horizon.nextNumber())
        horizon.begin(log: Self.log, floor: 0, [(scope: .tag("a"), position: 4)])
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
        let first = horizon.mark(Self.key.bytes, until: 100)
        #expect(!horizon.permits(try Self.record(at: 1), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 1, published: 101), of: Self.key))
        let second = horizon.mark(Self.key.bytes, until: 100)
        horizon.unmark(first)
        #expect(!horizon.permits(try Self.record(at: 1), of: Self.key))
        // The store may confirm the removal while the record of before is on its way.
        let hidden = horizon.hidden(Self.key)
        horizon.unmark(second)
        #expect(!horizon.permits(try Self.record(at: 1), of: Self.key, hidden: hidden))
        #expect(horizon.permits(try Self.record(at: 1), of: Self.key))
    }

    /// The variants of a resource that ended here are not used, whatever index names them.
    @Test func endOfAResourceHidesItsVariants() throws {
        var horizon = PurgeHorizon()
        horizon.begin(log: Self.log, floor: 0, [])
        horizon.end(Self.key.resource, at: 100)
        #expect(!horizon.permits(try Self.record(at: 1), of: Self.key))
        #expect(horizon.permits(try Self.record(at: 1, published: 101), of: Self.key))
        horizon.endEverything(at: 200)
        #expect(!horizon.permits(try Self.record(at: 1, published: 101), of: Self.key))
    }

    /// A record that waits is not sent after its resource has ended, or to another log.
    @Test func recordIsSentUntilItsResourceEnds() {
        var horizon = PurgeHorizon(countMax: 2)
        let other = [UInt8](repeating: 3, count: 16)
        func mark() -> PurgeHorizon.Mark { horizon.mark(Self.key.bytes, until: 60_000) }
        func maySend(_ mark: PurgeHorizon.Mark, _ log: [UInt8] = Self.log) -> Bool {
            horizon.maySend(Self.key, mark, log: log)
        }
        let early = mark()
        #expect(!maySend(early))
        horizon.begin(log: Self.log, floor: 0, [])
        // Marks hide records, also if there are too many of them; they keep none from being sent.
        for number in 3...5 { _ = horizon.mark([UInt8(number)], until: 60_000) }
        #expect(horizon.hidden(Self.key) == 60_000)
        #expect(maySend(early) && !maySend(early, other))
        horizon.end([7], at: 500)
        #expect(maySend(early))
        // An end holds for a second longer on the clock; what is published after it is sent.
        horizon.end(Self.key.resource, at: 200)
        let behind = mark()
        #expect(!maySend(early) && maySend(behind))
        // The third end joins them.
        horizon.end([8], at: 300)
        let later = mark()
        #expect(!maySend(behind) && maySend(later))
        horizon.endEverything(at: 700)
        let last = mark()
        #expect(!maySend(later) && maySend(last))
        horizon.end()
        #expect(!maySend(last))
        horizon.begin(log: other, floor: 0, [])
        #expect(!maySend(last) && maySend(last, other))
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
                    if step.isMultiple(of: 2) {
                        _ = horizon.mark([key], until: Int64(step))
                    } else {
                        horizon.end([key], at: Int64(step))
                    }
                }
                let tag = "t\(Int.random(in: 0..<8, using: &random))"
                let key = UInt8.random(in: 0..<8, using: &random)
                let (position, published) = (
                    UInt64.random(in: 0...60, using: &random),
                    Int64.random(in: 0...60, using: &random)
                )
                let record = try Self.record(at: position, published: published, tags: [tag])
                guard horizon.permits(record, of: SharedKey(bytes: [key], resource: [key])) else {
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
