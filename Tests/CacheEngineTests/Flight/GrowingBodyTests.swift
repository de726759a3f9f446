import CacheTestSupport
import Testing

@testable import CacheEngine

/// The growing body as a value: every change, in every order, with numbers in place of tasks.
@Suite struct GrowingBodyTests {
    private enum Waiter: Hashable {
        case writer
        case reader(Int)
    }

    private static let windowBytes = 20

    /// A body with the readers that a test knows, and its rules after each change.
    private struct Model {
        var body = GrowingBody<Waiter>(windowBytes: windowBytes)
        /// The bytes appended so far, and those that may be read back.
        var count = 0
        var spilledCount = 0
        var isSpilled = false
        var isPassing = false
        /// The requests that were told of the body and have not come.
        var awaited = 1
        var offsets: [Int: Int] = [:]
        var asleep: Set<Int> = []
        /// The readers that have asked for bytes, and those of them that were never late.
        var begun: Set<Int> = []
        var steady: Set<Int> = []
        var isWriterParked = false

        mutating func note(_ woken: GrowingBody<Waiter>.Woken) {
            for reader in woken.readers { note(reader) }
            if let writer = woken.writer { note(writer) }
        }

        mutating func note(_ waiter: Waiter) {
            switch waiter {
            case .writer:
                #expect(isWriterParked, "The writer is woken once")
                isWriterParked = false
            case .reader(let id):
                #expect(asleep.remove(id) != nil, "A reader is woken once")
            }
        }

        mutating func append(_ pieceBytes: Int) {
            guard !isWriterParked else { return }
            // A real writer waits for room in a body that is not kept.
            if isPassing, body.park(writer: .writer) {
                isWriterParked = true
                return
            }
            let wasOpen = body.isOpen
            note(body.append(piece(pieceBytes, from: count)))
            if wasOpen { count += pieceBytes }
            if isSpilled, !isPassing { spilledCount = count }
        }

        mutating func step(_ id: Int) {
            guard !asleep.contains(id), let offset = offsets[id] else { return }
            let (step, writer) = body.step(id, at: offset, limit: .max)
            if let writer { note(writer) }
            if case .failed(let error) = step, steady.contains(id) {
                #expect((error as? CacheError)?.code != .readerTooSlow, "A steady reader is cut")
            }
            begun.insert(id)
            // Bytes may have been dropped between those that are read back and the next ones.
            if !isSpilled { steady.insert(id) }
            switch step {
            case .chunk(let chunk):
                #expect(chunk.array == piece(chunk.count, from: offset).array)
                offsets[id] = offset + chunk.count
            case .readBack(_, let range):
                #expect(range.lowerBound == offset && range.upperBound <= spilledCount)
                if let writer = body.move(id, to: range.upperBound, limit: .max) { note(writer) }
                offsets[id] = range.upperBound
            case .wait:
                #expect(offset == count && body.isOpen)
                if body.park(id, beyond: offset, .reader(id)) { asleep.insert(id) }
            case .end, .failed: leave(id)
            }
        }

        mutating func leave(_ id: Int) {
            guard offsets.removeValue(forKey: id) != nil else { return }
            begun.remove(id)
            steady.remove(id)
            note(body.leave(id))
        }

        /// The watchdog looks; `isLate` is true when the readers' time is over.
        mutating func look(isLate: Bool) {
            guard isWriterParked else { return }
            if isLate { steady = steady.filter { (offsets[$0] ?? 0) > count - windowBytes } }
            note(body.dismissStill(for: isLate ? 0 : .max, nowNanoseconds: 1))
        }

        /// A request that was told of the body joins it, or declines it.
        mutating func come(_ choice: Int) {
            awaited -= 1
            if choice > 0, let id = body.join(at: 0, choice == 1 ? .asker : .follower) {
                offsets[id] = 0
            } else {
                note(body.decline())
            }
        }

        mutating func change(_ number: Int, _ random: inout SeededRandom) {
            switch number {
            case 0..<8: append(Int.random(in: 1...12, using: &random))
            case 8..<20:
                if let id = offsets.keys.sorted().randomElement(using: &random) { step(id) }
            case 20..<22 where awaited > 0: come(.random(in: 0..<4, using: &random))
            case 22:
                if let id = offsets.keys.sorted().randomElement(using: &random) { leave(id) }
            case 23 where !isSpilled && !isPassing:
                isSpilled = true
                spilledCount = count
                note(body.spill { _ in .empty })
            case 24 where count > 30:
                isPassing = true
                note(body.pass())
            case 25 where isPassing && !isWriterParked:
                isWriterParked = body.park(writer: .writer)
            case 26 where awaited < 5:
                let more = Int.random(in: 1...2, using: &random)
                awaited += more
                note(body.awaitReaders(more: more))
            case 27 where count > 400:
                note(Bool.random(using: &random) ? body.finish() : body.fail(CancellationError()))
            case 28: look(isLate: Bool.random(using: &random))
            default: break
            }
        }

        func check(_ place: String) {
            body.checkInvariants()
            for id in asleep { #expect(offsets[id] == count && body.isOpen, "\(place): asleep") }
            if isWriterParked {
                let reading = offsets.filter { begun.contains($0.key) }
                let fastest = reading.values.min() ?? offsets.values.max() ?? 0
                #expect(body.isOpen && body.needsBytes, "\(place): the writer waits for no reader")
                #expect(count - fastest >= windowBytes, "\(place): the writer waits with room")
            }
            #expect(body.readerCount == offsets.count, "\(place)")
            checkNeed(place)
        }

        /// A reader that is not steady may be cut off, and then needs no bytes.
        private func checkNeed(_ place: String) {
            guard body.isOpen, isPassing else {
                #expect(body.needsBytes == body.isOpen, "\(place)")
                return
            }
            if awaited > 0 || !steady.isEmpty {
                #expect(body.needsBytes, "\(place)")
            } else if offsets.isEmpty {
                #expect(!body.needsBytes, "\(place)")
            }
        }
    }

    /// No reader sleeps while there are bytes for it, no writer while there is room, and every byte
    /// is the one that was appended.
    @Test func noOrderOfChangesLosesAByteOrAWaiter() {
        for seed in 0..<2_000 as Range<UInt64> {
            var random = SeededRandom(seed: seed)
            var model = Model()
            for turn in 0..<150 {
                model.change(Int.random(in: 0..<29, using: &random), &random)
                model.check("seed \(seed), turn \(turn)")
            }
        }
    }

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

    @Test func followerOfABrokenBodyAsksForItself() {
        var body = GrowingBody<Int>(windowBytes: 100)
        _ = body.append(piece(10))
        _ = body.fail(CancellationError())
        #expect(body.join(at: 0, .follower) == nil)
        #expect(body.join(at: 0, .asker) != nil)
    }
}

private func piece(_ count: Int, from offset: Int = 0) -> ByteChunk {
    ByteChunk((offset..<offset + count).map { UInt8(truncatingIfNeeded: $0) })
}
