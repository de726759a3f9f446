import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// The growing body of a flight in each mode, with readers of every kind.
@Suite struct BodyChainTests {
    static func chunk(_ bytes: [UInt8]) -> ByteChunk { ByteChunk(bytes) }

    /// The bytes that a reader got, and how its reading ended.
    final class Record: Sendable {
        private struct State {
            var bytes: [UInt8] = []
            var error: (any Error)?
            var hasEnded = false
        }
        private let state = Mutex(State())
        let range: Range<Int>?
        init(_ range: Range<Int>?) { self.range = range }
        var bytes: [UInt8] { state.withLock { $0.bytes } }
        var error: (any Error)? { state.withLock { $0.error } }
        var hasEnded: Bool { state.withLock { $0.hasEnded } }
        func add(_ chunk: ByteChunk) { state.withLock { $0.bytes += chunk.array } }
        func end(_ error: (any Error)?) {
            state.withLock { state in
                state.error = error
                state.hasEnded = true
            }
        }
    }

    enum Mode: CaseIterable, Sendable {
        case whole, spilled, passing
        /// Spilled for a while, then no longer stored.
        case spilledInPart

        var endsPassing: Bool { self == .passing || self == .spilledInPart }
    }

    static func read(
        _ stream: BodyStream,
        into record: Record,
        on executor: SeededExecutor,
        pauseTurns: Int = 0
    ) -> Task<Void, Never> {
        executor.start {
            do {
                for try await piece in stream {
                    record.add(piece)
                    for _ in 0..<pauseTurns { await Task.yield() }
                }
                record.end(nil)
            } catch {
                record.end(error)
            }
        }
    }

    @Test func lateReaderStartsAtTheFirstByte() async throws {
        let executor = SeededExecutor(seed: 1)
        let chain = BodyChain(expectedCount: nil, windowBytes: 10)
        chain.append(ByteChunk("first "))
        let record = Record(nil)
        _ = Self.read(try #require(chain.stream()), into: record, on: executor)
        await executor.settle()
        #expect(record.bytes == Array("first ".utf8) && !record.hasEnded)
        chain.append(ByteChunk("second"))
        chain.finish()
        await executor.settle()
        #expect(record.bytes == Array("first second".utf8) && record.hasEnded)
        #expect(record.error == nil && chain.readerCount == 0)
    }

    @Test func theFirstEndCounts() async throws {
        let executor = SeededExecutor(seed: 1)
        let chain = BodyChain(expectedCount: nil, windowBytes: 10)
        let record = Record(nil)
        _ = Self.read(try #require(chain.stream()), into: record, on: executor)
        chain.append(ByteChunk("part"))
        chain.fail(CacheError(.originTimedOut, detail: "late"))
        chain.append(ByteChunk("more"))
        chain.finish()
        await executor.settle()
        #expect(record.bytes == Array("part".utf8))
        #expect((record.error as? CacheError)?.code == .originTimedOut)
        #expect(chain.stream() == nil, "Nobody begins to read what has broken off")
    }

    @Test func cancelledFetchFailsItsReadersWithOriginFailed() async throws {
        let executor = SeededExecutor(seed: 1)
        let chain = BodyChain(expectedCount: nil, windowBytes: 10)
        let record = Record(nil)
        _ = Self.read(try #require(chain.stream()), into: record, on: executor)
        chain.fail(CancellationError())
        await executor.settle()
        #expect((record.error as? CacheError)?.code == .originFailed)
    }

    @Test func aSpilledChainHoldsItsWindow() {
        let chain = BodyChain(expectedCount: nil, windowBytes: 100)
        chain.spill { _ in ByteChunk([0]) }
        for _ in 0..<1_000 { chain.append(ByteChunk([UInt8](repeating: 7, count: 10))) }
        #expect(chain.heldBytes <= 110)
    }

    @Test func aCancelledReaderLeavesItsPlace() async throws {
        let executor = SeededExecutor(seed: 1)
        let chain = BodyChain(expectedCount: nil, windowBytes: 10)
        let stream = try #require(chain.stream())
        let record = Record(nil)
        let task = Self.read(stream, into: record, on: executor)
        await executor.settle()
        #expect(chain.readerCount == 1)
        task.cancel()
        await executor.settle()
        #expect(record.error is CancellationError)
        #expect(chain.readerCount == 0)
    }

    /// Readers of the whole body and of parts, quick, slow and leaving, in each mode.
    ///
    /// Each reader gets a prefix of its bytes, a reader without an error gets all of them, and the
    /// writer always finishes.
    @Test(arguments: Mode.allCases, 0..<64 as Range<UInt64>)
    func everyReaderGetsItsBytesOrAnError(mode: Mode, seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let executor = SeededExecutor(seed: seed)
        let body = (0..<Int.random(in: 1...4_000, using: &random)).map {
            UInt8(truncatingIfNeeded: $0)
        }
        let windowBytes = Int.random(in: 1...1_000, using: &random)
        let chain = BodyChain(expectedCount: body.count, windowBytes: windowBytes)
        var records: [Record] = []
        for number in 0..<Int.random(in: 1...6, using: &random) {
            var range: Range<Int>?
            if number > 0, Bool.random(using: &random) {
                let low = Int.random(in: 0..<body.count, using: &random)
                range = low..<Int.random(in: low + 1...body.count, using: &random)
            }
            let record = Record(range)
            records.append(record)
            let stream = try #require(chain.stream(range))
            let task = Self.read(
                stream,
                into: record,
                on: executor,
                pauseTurns: Int.random(in: 0...6, using: &random)
            )
            guard Int.random(in: 0..<4, using: &random) == 0 else { continue }
            let turns = Int.random(in: 0..<20, using: &random)
            executor.start {
                for _ in 0..<turns { await Task.yield() }
                task.cancel()
            }
        }
        let pieceMax = Int.random(in: 1...400, using: &random)
        let breaksAt = Int.random(in: 0..<3, using: &random) == 0 ? body.count / 2 : Int.max
        let switchAt = Int.random(in: 0...body.count, using: &random)
        let passesAt = Int.random(in: switchAt...body.count, using: &random)
        /// The number of bytes written out.
        let written = Mutex(0)
        let writer = executor.start {
            var offset = 0
            var mustSwitch = mode != .whole
            var mustPass = mode == .spilledInPart
            var wasBounded = false
            var lengths = SeededRandom(seed: seed ^ 0xABC)
            while offset < body.count {
                if mustSwitch, offset >= switchAt {
                    mustSwitch = false
                    if mode == .passing { chain.pass() }
                    if mode == .spilled || mode == .spilledInPart {
                        chain.spill { range in
                            await Task.yield()
                            #expect(range.upperBound <= written.withLock { $0 })
                            let some =
                                range.lowerBound..<min(range.upperBound, range.lowerBound + 50)
                            return ByteChunk(Array(body[some]))
                        }
                    }
                }
                if mustPass, !mustSwitch, offset >= passesAt {
                    mustPass = false
                    chain.pass()
                }
                let end = min(body.count, offset + Int.random(in: 1...pieceMax, using: &lengths))
                if mode == .spilled || mustPass { written.withLock { $0 = end } }
                chain.append(ByteChunk(Array(body[offset..<end])))
                offset = end
                // At most two windows and the chunks at their edges, once the writer has waited for
                // room.
                if wasBounded { #expect(chain.heldBytes <= 2 * (windowBytes + pieceMax)) }
                wasBounded = mode != .whole && !mustSwitch
                if mode.endsPassing, !mustSwitch, !mustPass, await !chain.waitForRoom() {
                    chain.fail(CancellationError())
                    return
                }
                if offset >= breaksAt {
                    chain.fail(CacheError(.originFailed, detail: "reset"))
                    return
                }
                await Task.yield()
            }
            chain.finish()
        }
        await executor.settle()
        await writer.value
        for record in records {
            let wanted = Array(record.range.map { body[$0] } ?? body[...])
            #expect(record.hasEnded)
            #expect(wanted.starts(with: record.bytes))
            if record.error == nil { #expect(record.bytes == wanted) }
            if !mode.endsPassing, let error = record.error as? CacheError {
                #expect(error.code == .originFailed && breaksAt != Int.max)
            }
            // A reader that has begun reads steadily: no other cuts it off.
            if mode == .passing, !record.bytes.isEmpty {
                #expect((record.error as? CacheError)?.code != .readerTooSlow)
            }
        }
        #expect(chain.readerCount == 0)
    }

    /// A client that reads more slowly than the origin sends, after the disk has stopped storing.
    @Test func onlyReaderOfAPartlyKeptBodyGetsAllOfIt() async throws {
        let executor = SeededExecutor(seed: 1)
        let body = (0..<10_000).map { UInt8(truncatingIfNeeded: $0) }
        let chain = BodyChain(expectedCount: nil, windowBytes: 1_000)
        let record = Record(nil)
        let stream = try #require(chain.stream())
        chain.spill { range in ByteChunk(Array(body[range])) }
        for start in stride(from: 0, to: 5_000, by: 500) {
            chain.append(ByteChunk(Array(body[start..<start + 500])))
        }
        chain.pass()
        let writer = executor.start {
            for start in stride(from: 5_000, to: 10_000, by: 500) {
                chain.append(ByteChunk(Array(body[start..<start + 500])))
                #expect(await chain.waitForRoom())
            }
            chain.finish()
        }
        _ = Self.read(stream, into: record, on: executor, pauseTurns: 3)
        await executor.settle()
        await writer.value
        #expect(record.error == nil && record.bytes == body)
    }

    /// Its reader has not left.
    @Test(.timeLimit(.minutes(1))) func waitForRoomEndsOnceAPartHasBeenReadBack() async throws {
        let executor = SeededExecutor(seed: 1)
        let chain = BodyChain(expectedCount: nil, windowBytes: 100)
        let stream = try #require(chain.stream(0..<300))
        chain.spill { range in ByteChunk([UInt8](repeating: 7, count: range.count)) }
        for _ in 0..<10 { chain.append(ByteChunk([UInt8](repeating: 7, count: 50))) }
        chain.pass()
        chain.append(ByteChunk([UInt8](repeating: 7, count: 50)))
        let writing = executor.start { await chain.waitForRoom() }
        await executor.settle()
        let reading = executor.start {
            var iterator = stream.makeAsyncIterator()
            return (try? await iterator.next())?.count
        }
        await executor.settle()
        #expect(await reading.value == 300)
        #expect(await !writing.value)
        #expect(chain.readerCount == 1)
        withExtendedLifetime(stream) {}
    }

    @Test(.timeLimit(.minutes(1))) func waitForRoomEndsOnceEveryReaderHasDeclined() async {
        let chain = BodyChain(expectedCount: nil, windowBytes: 10)
        chain.pass()
        chain.append(ByteChunk([UInt8](repeating: 0, count: 9)))
        chain.awaitReaders(more: 1)
        chain.decline()
        #expect(await chain.waitForRoom())
        chain.decline()
        chain.append(ByteChunk([UInt8](repeating: 0, count: 9)))
        #expect(await !chain.waitForRoom())
        #expect(chain.heldBytes <= 18)
    }
}
