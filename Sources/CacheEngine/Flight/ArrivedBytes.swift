/// The bytes of a body that have arrived, as a value: those in memory, and where those dropped from
/// it are read back.
///
///     whole ──spill──▶ spilled
///       │                 │pass
///       └──────pass───────┴─▶ passing
///
/// A *whole* body is in memory until it ends. The dropped bytes of a *spilled* body are read back
/// from the place they were written to. Those of a *passing* body are lost, except the part that was
/// written while it was spilled.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. `chunks` cover `firstOffset..<endOffset` without a gap.
/// 2. While whole and open, `firstOffset` is 0.
struct ArrivedBytes {
    enum Mode {
        case whole
        case spilled(BodyChain.SpillReader)
        case passing(Remains?)
    }

    /// The written part of a body that stopped being stored.
    struct Remains {
        let reader: BodyChain.SpillReader
        let end: Int
    }

    enum Ending {
        case open
        case complete
        /// The rest cannot be had.
        case broken(any Error)
        /// The fetch gave it up, because it was cancelled or no reader needed more.
        case abandoned(any Error)

        var error: (any Error)? {
            switch self {
            case .broken(let error), .abandoned(let error): error
            case .open, .complete: nil
            }
        }
    }

    private(set) var mode = Mode.whole
    private(set) var ending = Ending.open
    /// The offset of the first byte in memory.
    private(set) var firstOffset = 0
    /// The number of bytes that have arrived.
    private(set) var endOffset = 0
    private var chunks: [ByteChunk] = []
    private var chunkOffsets: [Int] = []
    /// The number of chunks at the front that are dropped; their places stay until they are half of
    /// all, so that no drop moves all those that are left.
    private var head = 0

    /// The number of bytes in memory.
    var heldBytes: Int { endOffset - firstOffset }

    /// Whether the body has not ended.
    var isOpen: Bool {
        if case .open = ending { return true }
        return false
    }

    var isPassing: Bool {
        if case .passing = mode { return true }
        return false
    }

    var isSpilled: Bool {
        if case .spilled = mode { return true }
        return false
    }

    /// The end of the bytes that can still be read back after storing stopped.
    var remainsEnd: Int {
        if case .passing(let remains?) = mode { remains.end } else { 0 }
    }

    /// Whether the body was kept until it was complete, and no longer has its beginning.
    var isLetGo: Bool {
        guard case .whole = mode, case .complete = ending else { return false }
        return firstOffset > 0
    }

    /// The chunks of a complete body; `nil` unless all are in memory.
    var allChunks: [ByteChunk]? {
        guard case .complete = ending, firstOffset == 0 else { return nil }
        return chunks
    }

    /// The error of a reader whose next bytes were dropped.
    static var readerTooSlow: CacheError {
        CacheError(
            .readerTooSlow,
            detail: "This reader is too far behind the others, and the body is not stored; "
                + "read faster, or raise originLimits.windowSize"
        )
    }

    /// The next bytes at `offset` for a reader that needs none beyond `limit`.
    func next(at offset: Int, limit: Int) -> BodyChain.Step {
        if offset >= limit { return .end }
        if offset < firstOffset {
            if let error = ending.error { return .failed(error) }
            switch mode {
            case .spilled(let reader):
                return .readBack(reader, offset..<min(limit, firstOffset))
            case .passing(let remains?) where offset < remains.end:
                return .readBack(remains.reader, offset..<min(limit, remains.end))
            case .whole, .passing: return .failed(Self.readerTooSlow)
            }
        }
        if offset < endOffset { return .chunk(chunk(at: offset, limit: limit)) }
        switch ending {
        case .open: return .wait
        case .complete: return .end
        case .broken(let error), .abandoned(let error): return .failed(error)
        }
    }

    private func chunk(at offset: Int, limit: Int) -> ByteChunk {
        // The last chunk that begins at or before the offset.
        var low = head
        var high = chunkOffsets.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if chunkOffsets[middle] <= offset { low = middle } else { high = middle }
        }
        let chunk = chunks[low]
        assert(
            (chunkOffsets[low]..<chunkOffsets[low] + chunk.count).contains(offset),
            "the chunk has the offset"
        )
        // A reader's limit may be any announced length, so nothing is added to it.
        let start = offset - chunkOffsets[low]
        let part = chunk[start..<min(chunk.count, limit - chunkOffsets[low])]
        // A reader that keeps its pieces would keep each chunk that one of them was joined to.
        guard part.count < chunk.count, chunk.count <= ChunkJoint.joinedBytesMax else {
            return part
        }
        return part.withUnsafeBytes { ByteChunk(copying: $0) }
    }

    /// Appends a chunk; `joined`, if given, has its bytes after those of the chunk before.
    mutating func append(_ chunk: ByteChunk, joined: ByteChunk? = nil) {
        assert(isOpen && !chunk.isEmpty)
        if !chunks.joinLast(with: chunk, as: joined) {
            chunks.append(chunk)
            chunkOffsets.append(endOffset)
        }
        endOffset += chunk.count
        assert(chunkOffsets.count == chunks.count)
    }

    /// From now on bytes that are dropped are read back by `reader`.
    mutating func spill(_ reader: @escaping BodyChain.SpillReader) {
        assert(!isPassing, "a body that passes is not stored again")
        mode = .spilled(reader)
    }

    /// From now on bytes that are dropped are lost.
    mutating func pass() {
        switch mode {
        case .whole: mode = .passing(nil)
        case .spilled(let reader): mode = .passing(Remains(reader: reader, end: firstOffset))
        case .passing: break
        }
    }

    /// Ends the body; only the first end counts.
    mutating func end(_ ending: Ending) {
        if isOpen { self.ending = ending }
    }

    /// Drops the chunks that end at or before `offset`.
    mutating func drop(before offset: Int) {
        while head < chunks.count, chunkOffsets[head] + chunks[head].count <= offset {
            firstOffset = chunkOffsets[head] + chunks[head].count
            chunks[head] = .empty
            head += 1
        }
        guard head > 0, head * 2 >= chunks.count else { return }
        chunks.removeFirst(head)
        chunkOffsets.removeFirst(head)
        head = 0
    }

    func checkInvariants() {
        #if ENGINE_CHECKS
            var offset = firstOffset
            precondition(head == 0 || head * 2 < chunks.count)
            for (chunk, start) in zip(chunks, chunkOffsets).dropFirst(head) {
                precondition(start == offset)
                offset += chunk.count
            }
            precondition(offset == endOffset)
            if case .whole = mode, isOpen { precondition(firstOffset == 0) }
        #endif
    }
}
