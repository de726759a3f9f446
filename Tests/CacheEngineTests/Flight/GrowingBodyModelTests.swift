import CacheTestSupport
import Testing

@testable import CacheEngine

/// The growing body as a value: every change, in every order, with numbers in place of tasks.
@Suite struct GrowingBodyModelTests {
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
}
