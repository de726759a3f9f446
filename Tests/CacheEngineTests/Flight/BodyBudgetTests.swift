import CacheTestSupport
import Testing

@testable import CacheEngine

/// The bytes that arriving bodies hold for their readers, and what follows when they are too many.
@Suite struct BodyBudgetTests {
    private typealias Body = GrowingBody<Int>

    /// A body that is being stored, 30 bytes ahead of its one reader, in a shortage.
    private static func heldUpBody() throws -> (body: Body, reader: BodyChain.ReaderID) {
        let (joined, reader) = try Self.bodyWithReader(leastWindowBytes: 20)
        var body = joined
        _ = body.append(piece(30))
        body.shortage.isForReaders = true
        let isParked = body.park(writer: 7)
        #expect(isParked)
        return (body, reader)
    }

    // MARK: A body that is being stored

    @Test func writerOfAKeptBodyWaitsForItsSlowestReaderInAShortage() throws {
        var body = Body(windowBytes: 100, leastWindowBytes: 20)
        let (asker, follower) = (body.join(at: 0, .asker), body.join(at: 0, .follower))
        let (slow, quick) = (try #require(asker), try #require(follower))
        _ = body.append(piece(30))
        let waitsInPlenty = body.park(writer: 7)
        #expect(!waitsInPlenty)
        body.shortage.isForReaders = true
        let waitsInShortage = body.park(writer: 7)
        #expect(waitsInShortage)
        let wokenByQuick = body.step(quick, at: 0, limit: .max).writer
        #expect(wokenByQuick == nil)
        let wokenBySlow = body.step(slow, at: 0, limit: .max).writer
        #expect(wokenBySlow == 7)
        // Bytes within the least window delay no reader.
        _ = body.append(piece(19, from: 30))
        let waitsForLittle = body.park(writer: 7)
        #expect(!waitsForLittle)
    }

    @Test func writerOfAKeptBodyDoesNotWaitForAReaderThatHasLeft() throws {
        let (held, reader) = try Self.heldUpBody()
        var body = held
        let woken = body.leave(reader).writer
        #expect(woken == 7)
    }

    @Test func readersHoldUpAKeptBodyForALimitedTime() throws {
        var body = try Self.heldUpBody().body
        var woken: [Int?] = []
        for now in [5, 14, 15] as [UInt64] {
            woken.append(body.dismissStill(for: 10, nowNanoseconds: now).writer)
        }
        #expect(woken == [nil, nil, 7])
        #expect(body.isOverdue)
        let waitsAgain = body.park(writer: 7)
        #expect(!waitsAgain, "It is not stored from now on")
    }

    @Test func heldUpBodyLeavesTheStoreToOthersThatNeedMemory() throws {
        var body = try Self.heldUpBody().body
        body.shortage.isForStore = true
        let woken = body.dismissStill(for: .max, nowNanoseconds: 1).writer
        #expect(woken == 7)
        #expect(body.isOverdue)
    }

    @Test func writerGoesOnOnceTheShortageHasEnded() throws {
        var body = try Self.heldUpBody().body
        body.shortage.isForReaders = false
        let woken = body.dismissStill(for: 10, nowNanoseconds: 100).writer
        #expect(woken == 7)
        #expect(!body.isOverdue)
    }

    // MARK: The window

    private static func bodyWithReader(
        leastWindowBytes: Int = BodyLimits.usualLeastBytes
    ) throws -> (Body, BodyChain.ReaderID) {
        var body = Body(windowBytes: 100, leastWindowBytes: leastWindowBytes)
        let joined = body.join(at: 0, .asker)
        return (body, try #require(joined))
    }

    /// Appends bytes at the reader's place, and lets it take them.
    private static func pass(
        _ count: Int,
        at offset: Int,
        to reader: BodyChain.ReaderID,
        _ body: inout Body
    ) {
        _ = body.append(piece(count, from: offset))
        let step = body.step(reader, at: offset, limit: .max).step
        guard case .chunk = step else {
            Issue.record("The reader has no bytes at \(offset)")
            return
        }
    }

    @Test func spilledBodyHoldsLittleInAShortage() throws {
        let (joined, reader) = try Self.bodyWithReader(leastWindowBytes: 20)
        var body = joined
        _ = body.spill { _ in .empty }
        for offset in stride(from: 0, to: 200, by: 10) {
            _ = body.append(piece(10, from: offset))
        }
        #expect(body.heldBytes == 100)
        body.shortage.isForReaders = true
        _ = body.append(piece(10, from: 200))
        #expect(body.heldBytes == 20)
        guard case .readBack(_, let range) = body.step(reader, at: 0, limit: .max).step else {
            Issue.record("The reader finds nothing behind the window")
            return
        }
        #expect(range == 0..<190)
    }

    @Test func spilledBodyHoldsNothingThatItsReadersHaveTaken() throws {
        let (joined, reader) = try Self.bodyWithReader()
        var body = joined
        _ = body.spill { _ in .empty }
        for offset in stride(from: 0, to: 200, by: 10) {
            Self.pass(10, at: offset, to: reader, &body)
            #expect(body.heldBytes == 0)
        }
    }

    @Test func passingBodyStaysCloseToItsReadersInAShortage() throws {
        let (joined, reader) = try Self.bodyWithReader(leastWindowBytes: 20)
        var body = joined
        _ = body.pass()
        guard case .wait = body.step(reader, at: 0, limit: .max).step else {
            Issue.record("There are bytes already")
            return
        }
        _ = body.append(piece(20))
        let waitsInPlenty = body.park(writer: 7)
        #expect(!waitsInPlenty)
        body.shortage.isForReaders = true
        let waitsInShortage = body.park(writer: 7)
        #expect(waitsInShortage)
        let woken = body.step(reader, at: 0, limit: .max).writer
        #expect(woken == 7)
    }

    /// No request can join without the beginning, so the window behind the readers is of no use.
    @Test func passingBodyWithoutItsBeginningHoldsOnlyWhatIsRead() throws {
        let (joined, reader) = try Self.bodyWithReader()
        var body = joined
        _ = body.pass()
        for offset in stride(from: 0, to: 300, by: 10) {
            Self.pass(10, at: offset, to: reader, &body)
        }
        #expect(body.heldBytes == 10)
    }

    @Test func readerThatStoodStillIsCutOffEarlierInAShortage() throws {
        var body = Body(windowBytes: 100, leastWindowBytes: 20)
        _ = body.awaitReaders(more: 1)
        let (asker, follower) = (body.join(at: 0, .asker), body.join(at: 0, .follower))
        let (still, quick) = (try #require(asker), try #require(follower))
        _ = body.pass()
        body.shortage.isForReaders = true
        for reader in [still, quick] {
            guard case .wait = body.step(reader, at: 0, limit: .max).step else {
                Issue.record("There are bytes already")
                return
            }
        }
        for offset in [0, 20] {
            _ = body.append(piece(20, from: offset))
            guard case .chunk = body.step(quick, at: offset, limit: .max).step else {
                Issue.record("The quick reader has no bytes at \(offset)")
                return
            }
            guard offset == 0 else { break }
            let isParked = body.park(writer: 7)
            #expect(isParked, "The other reader has taken nothing")
            for now in [1, 11] as [UInt64] {
                _ = body.dismissStill(for: 10, nowNanoseconds: now)
            }
        }
        _ = body.append(piece(20, from: 40))
        guard case .failed(let error) = body.step(still, at: 0, limit: .max).step else {
            Issue.record("The reader that stood still was not cut off")
            return
        }
        #expect((error as? CacheError)?.code == .readerTooSlow)
        #expect(body.heldBytes <= 40)
    }

    // MARK: A complete body

    @Test func completeBodyHoldsWhatItsReadersHaveYetToTake() throws {
        var body = Body(windowBytes: 100)
        _ = body.awaitReaders(more: 2)
        let (asker, follower) = (body.join(at: 0, .asker), body.join(at: 0, .follower))
        let (slow, quick) = (try #require(asker), try #require(follower))
        for offset in stride(from: 0, to: 50, by: 10) {
            _ = body.append(piece(10, from: offset))
        }
        _ = body.finish()
        _ = body.step(slow, at: 0, limit: .max)
        _ = body.step(quick, at: 0, limit: .max)
        #expect(body.heldBytes == 50, "A request that was told of the body has yet to come")
        _ = body.decline()
        #expect(body.heldBytes == 40)
        _ = body.step(quick, at: 10, limit: .max)
        #expect(body.heldBytes == 40)
        _ = body.leave(slow)
        #expect(body.heldBytes == 30)
        #expect(body.isLetGo)
        let late = body.join(at: 0, .follower)
        #expect(late == nil, "Its beginning is gone")
        guard case .chunk(let chunk) = body.step(quick, at: 20, limit: .max).step else {
            Issue.record("The reader has no bytes")
            return
        }
        #expect(chunk.array == piece(10, from: 20).array)
    }

    @Test func smallCompleteBodyNeedsNoPlaceAmongTheReaders() {
        for (pieces, isTaken) in [(1, true), (2, true), (3, false)] {
            var body = Body(windowBytes: 100, leastWindowBytes: 20)
            for number in 0..<pieces { _ = body.append(piece(10, from: 10 * number)) }
            _ = body.finish()
            let whole = body.takeWhole()
            #expect((whole?.count == pieces) == isTaken, "\(pieces)")
            #expect(body.heldBytes == (isTaken ? 0 : 10 * pieces), "\(pieces)")
        }
        var body = Body(windowBytes: 100, leastWindowBytes: 20)
        _ = body.append(piece(90))
        _ = body.finish()
        let whole = body.takeWhole()
        #expect(whole?.count == 1, "A reader would hold the one piece as well")
    }

    // MARK: The count

    private static func budget(_ totalBytes: Int) -> BodyBudget {
        BodyBudget(BodyLimits(totalBytes: totalBytes, leastBytes: 100))
    }

    @Test func budgetCountsWhatReadersHaveYetToTake() async throws {
        let executor = SeededExecutor(seed: 1)
        let budget = Self.budget(1_000)
        let chain = BodyChain(expectedCount: nil, windowBytes: 5_000, budget: budget)
        let record = BodyChainTests.Record(nil)
        let stream = try #require(chain.stream())
        chain.append(piece(1_000))
        #expect(budget.owedBytes == 1_000 && chain.hasRoom)
        chain.append(piece(500))
        #expect(budget.owedBytes == 1_500 && budget.shortage.isForReaders && !chain.hasRoom)
        _ = BodyChainTests.read(stream, into: record, on: executor)
        await executor.settle()
        #expect(budget.owedBytes == 0 && chain.hasRoom)
        chain.append(piece(700))
        chain.finish()
        #expect(budget.owedBytes == 700)
        await executor.settle()
        #expect(budget.owedBytes == 0 && record.hasEnded)
        #expect(record.bytes.count == 2_200)
    }

    @Test func bodyThatIsReleasedOwesNothing() throws {
        let budget = Self.budget(1_000)
        func hold() throws {
            let chain = BodyChain(expectedCount: nil, windowBytes: 5_000, budget: budget)
            let stream = try #require(chain.stream())
            chain.append(piece(500))
            chain.finish()
            #expect(budget.owedBytes == 500)
            withExtendedLifetime(stream) {}
        }
        try hold()
        #expect(budget.owedBytes == 0)
    }

    @Test func limitsFollowTheMemory() {
        func total(_ memoryBytes: Int, _ share: Double) -> Int {
            BodyLimits(memoryBytes: memoryBytes, entryShareMax: share).totalBytes
        }
        #expect(total(0, 0.1) == 32 << 20)
        #expect(total(1_000 << 20, 0.1) == 100 << 20)
        #expect(total(1_000 << 20, 0.01) == 100 << 20)
        #expect(total(1_000 << 20, 0.5) == 500 << 20)
        let budget = Self.budget(10)
        budget.gather(11)
        #expect(budget.shortage == BodyBudget.Shortage(isForStore: true))
        budget.setTotal(11)
        #expect(budget.shortage == BodyBudget.Shortage())
        budget.releaseGathered(11)
        #expect(budget.gatheredBytes == 0)
    }
}
