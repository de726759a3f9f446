import Testing

@testable import CacheEngine

/// Where the next bytes of a reader are: in memory, in the store, lost, or yet to come.
@Suite struct ArrivedBytesTests {
    /// A body of 60 bytes in chunks of 1, 2, … 9, 10 and 5.
    private static func body() -> ArrivedBytes {
        var bytes = ArrivedBytes()
        for count in Array(1...10) + [5] { bytes.append(piece(count, from: bytes.endOffset)) }
        return bytes
    }

    @Test func everyOffsetHasItsByteWhateverWasDropped() {
        for dropped in 0...60 {
            var bytes = Self.body()
            bytes.pass()
            bytes.drop(before: dropped)
            bytes.checkInvariants()
            #expect(bytes.firstOffset <= dropped && dropped - bytes.firstOffset < 10)
            for offset in bytes.firstOffset..<60 {
                for limit in [offset + 1, offset + 3, .max] {
                    guard case .chunk(let chunk) = bytes.next(at: offset, limit: limit) else {
                        Issue.record("No byte at \(offset) of those from \(bytes.firstOffset)")
                        continue
                    }
                    #expect(!chunk.isEmpty && chunk.count <= limit - offset)
                    #expect(chunk.array == piece(chunk.count, from: offset).array)
                }
            }
        }
    }

    @Test("a chunk that leaves costs the same, however many follow it", .timeLimit(.minutes(1)))
    func chunksOfALongBodyLeaveOneByOne() {
        let count = 400_000
        var bytes = ArrivedBytes()
        let single = piece(1)
        for _ in 0..<count { bytes.append(single) }
        bytes.end(.complete)
        for offset in 1...count { bytes.drop(before: offset) }
        #expect(bytes.firstOffset == count && bytes.heldBytes == 0)
    }

    @Test func readerThatKeepsSinglePiecesKeepsNoChunkTheyWereJoinedTo() throws {
        var joint = ChunkJoint()
        var bytes = ArrivedBytes()
        var pieces: [ByteChunk] = []
        for offset in 0..<100 {
            let single = piece(1, from: offset)
            bytes.append(single, joined: joint.join(single))
            guard case .chunk(let next) = bytes.next(at: offset, limit: .max) else { continue }
            pieces.append(next)
        }
        bytes.end(.complete)
        let whole = try #require(bytes.allChunks?.first)
        #expect(whole.count == 100 && pieces.count == 100)
        for (offset, piece) in pieces.enumerated() {
            let isApart = whole.withUnsafeBytes { whole in
                piece.withUnsafeBytes { $0.baseAddress != whole.baseAddress.map { $0 + offset } }
            }
            #expect(isApart && piece.array == [whole.array[offset]])
        }
    }

    @Test func joinedChunkTakesThePlaceOfTheLastOneIfThatIsStillInMemory() {
        for isTaken in [false, true] {
            var joint = ChunkJoint()
            var bytes = ArrivedBytes()
            if isTaken { bytes.pass() }
            for count in [3, 4, ChunkJoint.joinedBytesMax, 5, 6] {
                let next = piece(count, from: bytes.endOffset)
                bytes.append(next, joined: joint.join(next))
                if isTaken { bytes.drop(before: bytes.endOffset) }
                bytes.checkInvariants()
            }
            bytes.end(.complete)
            let counts = bytes.allChunks?.map(\.count)
            #expect(counts == (isTaken ? nil : [7, ChunkJoint.joinedBytesMax, 11]))
            guard !isTaken else { continue }
            for offset in 0..<bytes.endOffset {
                guard case .chunk(let chunk) = bytes.next(at: offset, limit: .max) else {
                    Issue.record("No byte at \(offset)")
                    continue
                }
                #expect(chunk.array == piece(chunk.count, from: offset).array)
            }
        }
    }

    @Test func droppedBytesOfASpilledBodyAreReadBackUpToThoseInMemory() {
        var bytes = Self.body()
        bytes.spill { _ in .empty }
        bytes.drop(before: 30)
        guard case .readBack(_, let all) = bytes.next(at: 3, limit: .max),
            case .readBack(_, let part) = bytes.next(at: 3, limit: 5)
        else {
            Issue.record("They are not read back")
            return
        }
        #expect(all == 3..<28 && part == 3..<5)
    }

    @Test func passingBodyKeepsOnlyThePartThatWasWritten() {
        var bytes = Self.body()
        bytes.spill { _ in .empty }
        bytes.drop(before: 30)
        bytes.pass()
        bytes.drop(before: 60)
        #expect(bytes.remainsEnd == 28 && bytes.heldBytes == 0)
        guard case .readBack(_, let written) = bytes.next(at: 3, limit: .max),
            case .failed(let error) = bytes.next(at: 28, limit: .max)
        else {
            Issue.record("The written part ends elsewhere")
            return
        }
        #expect(written == 3..<28)
        #expect((error as? CacheError)?.code == .readerTooSlow)
    }

    @Test func firstEndCounts() {
        var bytes = Self.body()
        guard case .wait = bytes.next(at: 60, limit: .max) else {
            Issue.record("An open body ends")
            return
        }
        #expect(bytes.allChunks == nil)
        bytes.end(.complete)
        bytes.end(.broken(CancellationError()))
        guard case .end = bytes.next(at: 60, limit: .max) else {
            Issue.record("A complete body breaks")
            return
        }
        #expect(bytes.allChunks?.count == 11 && !bytes.isLetGo)
        bytes.drop(before: 1)
        #expect(bytes.allChunks == nil && bytes.isLetGo)
    }

    @Test func readerOfABrokenBodyGetsTheErrorBehindTheBytes() {
        var bytes = Self.body()
        bytes.end(.broken(CancellationError()))
        guard case .chunk = bytes.next(at: 59, limit: .max),
            case .failed(let error) = bytes.next(at: 60, limit: .max),
            case .end = bytes.next(at: 60, limit: 60)
        else {
            Issue.record("The error does not stand behind the bytes")
            return
        }
        #expect(error is CancellationError)
    }
}
