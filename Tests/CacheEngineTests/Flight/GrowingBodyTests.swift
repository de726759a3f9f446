import Testing

@testable import CacheEngine

/// The growing body as a value, with numbers in place of tasks.
@Suite struct GrowingBodyTests {
    @Test func passingBodyHoldsTwoWindowsForItsReaders() {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.pass()
        let slow = body.join(at: 0, .asker)
        let quick = body.join(at: 0, .follower)
        #expect(slow == 1 && quick == 2)
        for offset in stride(from: 0, to: 1_000, by: 10) {
            _ = body.append(piece(10, from: offset))
            guard case .chunk = body.step(2, at: offset, limit: .max).step else {
                Issue.record("The quick reader has no bytes at \(offset)")
                return
            }
            #expect(body.heldBytes <= 220)
        }
        guard case .failed(let error) = body.step(1, at: 0, limit: .max).step else {
            Issue.record("The slow reader was not cut off")
            return
        }
        #expect((error as? CacheError)?.code == .readerTooSlow)
    }

    @Test func writerWaitsForASteadyReaderUntilItStandsStill() throws {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.pass()
        _ = body.awaitReaders(more: 1)
        let (asker, follower) = (body.join(at: 0, .asker), body.join(at: 0, .follower))
        let (slow, quick) = (try #require(asker), try #require(follower))
        for reader in [slow, quick] {
            guard case .wait = body.step(reader, at: 0, limit: .max).step else {
                Issue.record("There are bytes already")
                return
            }
        }
        _ = body.append(piece(100))
        guard case .chunk = body.step(quick, at: 0, limit: .max).step else {
            Issue.record("The quick reader has no bytes")
            return
        }
        let isParked = body.park(writer: 7)
        #expect(isParked, "The slow reader is a window behind")
        var woken: [Int?] = []
        for now in [0, 9, 10] as [UInt64] {
            woken.append(body.dismissStill(for: 10, nowNanoseconds: now).writer)
        }
        #expect(woken == [nil, nil, 7])
        _ = body.append(piece(100, from: 100))
        guard case .chunk = body.step(quick, at: 100, limit: .max).step else {
            Issue.record("The quick reader has no more bytes")
            return
        }
        _ = body.append(piece(100, from: 200))
        guard case .failed(let error) = body.step(slow, at: 0, limit: .max).step else {
            Issue.record("The reader that stood still was not cut off")
            return
        }
        #expect((error as? CacheError)?.code == .readerTooSlow)
    }

    /// A passing body of 550 bytes whose first part is in a file, and its reader, which is not begun.
    private static func partlyWritten() throws -> (GrowingBody<Int>, BodyChain.ReaderID) {
        var body = GrowingBody<Int>(windowBytes: 100)
        let joined = body.join(at: 0, .asker)
        let reader = try #require(joined)
        _ = body.spill { _ in .empty }
        for offset in stride(from: 0, to: 500, by: 50) { _ = body.append(piece(50, from: offset)) }
        _ = body.pass()
        _ = body.append(piece(50, from: 500))
        return (body, reader)
    }

    /// The origin sends on before the reader has asked for its first byte.
    @Test func readerBehindThePartThatWasWrittenFindsTheNextBytes() throws {
        let (growing, reader) = try Self.partlyWritten()
        var body = growing
        guard case .readBack(_, let range) = body.step(reader, at: 0, limit: .max).step else {
            Issue.record("The written part is not read back")
            return
        }
        #expect(range == 0..<400)
        _ = body.move(reader, to: 400, limit: .max)
        guard case .chunk(let chunk) = body.step(reader, at: 400, limit: .max).step else {
            Issue.record("The bytes behind the written part were dropped")
            return
        }
        #expect(chunk.array == piece(50, from: 400).array)
    }

    /// Ten thousand clients that end at once must not cost a look at ten thousand places each.
    @Test func crowdThatLeavesIsLookedAtOnceForEachPlace() {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.pass()
        _ = body.awaitReaders(more: 999)
        let crowd = (0..<1_000).compactMap { _ in body.join(at: 0, .follower) }
        for reader in crowd { _ = body.step(reader, at: 0, limit: .max) }
        _ = body.append(piece(50))
        for reader in crowd.prefix(500) { _ = body.step(reader, at: 0, limit: .max) }
        let before = body.lookedAtCount
        for reader in crowd { _ = body.leave(reader) }
        #expect(body.readerCount == 0)
        #expect(body.lookedAtCount - before <= 2 * crowd.count)
    }

    @Test func partFarAheadIsForTheAskerOnly() throws {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.pass()
        _ = body.append(piece(10))
        #expect(body.join(at: 111, .follower) == nil)
        #expect(body.join(at: 110, .follower) != nil)
        let asker = body.join(at: 5_000, .asker)
        let last = try #require(asker)
        guard case .wait = body.step(last, at: 5_000, limit: 5_001).step else {
            Issue.record("There is no such byte yet")
            return
        }
        _ = body.append(piece(500, from: 10))
        let isParked = body.park(writer: 7)
        #expect(!isParked, "Nothing holds up the way to the part")
    }

    /// A reader that has all its bytes neither holds up the writer nor is cut off.
    @Test func readerOfAPartThatHasItAllEndsCleanly() throws {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.pass()
        _ = body.awaitReaders(more: 1)
        let (follower, asker) = (body.join(at: 0, .follower), body.join(at: 0, .asker))
        let (part, whole) = (try #require(follower), try #require(asker))
        _ = body.append(piece(10))
        guard case .chunk = body.step(part, at: 0, limit: 10).step,
            case .chunk = body.step(whole, at: 0, limit: .max).step
        else {
            Issue.record("There are no bytes")
            return
        }
        _ = body.append(piece(300, from: 10))
        guard case .chunk = body.step(whole, at: 10, limit: .max).step else {
            Issue.record("There are no more bytes")
            return
        }
        let isParked = body.park(writer: 7)
        #expect(!isParked)
        _ = body.append(piece(1, from: 310))
        guard case .end = body.step(part, at: 10, limit: 10).step else {
            Issue.record("The part does not end")
            return
        }
    }

    /// Its client may take long to leave, and the origin's connection would be held meanwhile.
    @Test func readerThatHasAllItsBytesNeedsNoWriter() throws {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.pass()
        let joined = body.join(at: 0, .asker)
        let part = try #require(joined)
        _ = body.append(piece(200))
        let isParked = body.park(writer: 7)
        #expect(isParked && body.needsBytes)
        let (step, woken) = body.step(part, at: 0, limit: 10)
        guard case .chunk = step else {
            Issue.record("There are no bytes")
            return
        }
        #expect(woken == 7 && !body.needsBytes)
        _ = body.fail(CancellationError())
        guard case .end = body.step(part, at: 10, limit: 10).step else {
            Issue.record("The part does not end")
            return
        }
    }

    @Test func readerThatHasReadItsLastBytesBackNeedsNoWriter() throws {
        let (growing, part) = try Self.partlyWritten()
        var body = growing
        let isParked = body.park(writer: 7)
        #expect(isParked)
        guard case .readBack(_, let range) = body.step(part, at: 0, limit: 300).step else {
            Issue.record("The written part is not read back")
            return
        }
        #expect(range == 0..<300)
        let early = body.move(part, to: 200, limit: 300)
        #expect(early == nil && body.needsBytes)
        let woken = body.move(part, to: 300, limit: 300)
        #expect(woken == 7 && !body.needsBytes)
    }

    @Test func readerThatIsCutOffNeedsNoWriter() throws {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.pass()
        _ = body.awaitReaders(more: 1)
        let (asker, follower) = (body.join(at: 0, .asker), body.join(at: 0, .follower))
        let (slow, quick) = (try #require(asker), try #require(follower))
        for offset in stride(from: 0, to: 300, by: 50) {
            _ = body.append(piece(50, from: offset))
            guard case .chunk = body.step(quick, at: offset, limit: .max).step else {
                Issue.record("The quick reader has no bytes at \(offset)")
                return
            }
        }
        #expect(body.needsBytes)
        _ = body.leave(quick)
        #expect(body.readerCount == 1 && !body.needsBytes)
        guard case .failed(let error) = body.step(slow, at: 0, limit: .max).step else {
            Issue.record("The slow reader was not cut off")
            return
        }
        #expect((error as? CacheError)?.code == .readerTooSlow)
    }

    @Test func readerThatLeavesFirstDoesNotEndTheBodyForThoseToldOfIt() throws {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.pass()
        _ = body.awaitReaders(more: 1)
        let follower = body.join(at: 0, .follower)
        let quick = try #require(follower)
        _ = body.append(piece(10))
        _ = body.leave(quick)
        #expect(body.needsBytes)
        #expect(body.join(at: 0, .asker) != nil)
    }

    @Test func requestThatComesLateAndDeclinesDoesNotCountForAnother() {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.pass()
        _ = body.awaitReaders(more: 1)
        _ = body.decline()
        #expect(body.needsBytes)
        _ = body.decline()
        #expect(!body.needsBytes)
    }

    @Test func followerOfAnAbandonedBodyAsksForItself() {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.append(piece(10))
        _ = body.abandon(CancellationError())
        #expect(body.join(at: 0, .follower) == nil)
        #expect(body.join(at: 0, .asker) != nil)
    }
}
