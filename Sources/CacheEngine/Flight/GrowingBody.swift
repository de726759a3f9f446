/// A body while it arrives, as a value: its bytes, the places of its readers, and those that wait.
///
/// Any number of readers follow it at their own pace.
///
///     whole ──spill──▶ spilled        readers may start at byte 0
///       │                 │pass
///       └──────pass───────┴─▶ passing  no reader joins once chunks were dropped
///
/// While *whole*, every chunk is kept, for readers and for the entry that will be stored. Once
/// *spilled*, chunks behind the window are read back from the place they were written to. While
/// *passing* (not stored) the writer waits for the fastest reader, and a reader that falls a window
/// behind it is cut off. The window bounds memory in the last two modes, and a slow reader never
/// slows the others. A reader that lags behind when a spilled body stops being stored still gets
/// every byte already written.
///
/// Each change returns the waiters that it ends, and the caller wakes them.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. `chunks` cover `firstOffset..<endOffset` without a gap.
/// 2. While whole, `firstOffset` is 0.
/// 3. Each sleeper is a reader, and each reader sleeps at most once.
struct GrowingBody<Waiter> {
    /// The waiters that a change ends.
    struct Woken {
        var readers: [Waiter] = []
        var writer: Waiter?
    }

    private enum Mode {
        case whole
        case spilled(BodyChain.SpillReader)
        case passing(Remains?)
    }

    /// The written part of a body that stopped being stored.
    private struct Remains {
        let reader: BodyChain.SpillReader
        let end: Int
    }

    private enum Ending {
        case open
        case complete
        case broken(any Error)
    }

    private struct Reader {
        /// The first byte still to read; for a reader of a part it may lie beyond the end.
        var offset: Int
        var sleep: WaitingLine<Waiter>.Ticket?
        var isCutOff = false
    }

    private let windowBytes: Int
    private var mode = Mode.whole
    private var ending = Ending.open
    private var chunks: [ByteChunk] = []
    private var chunkOffsets: [Int] = []
    private var firstOffset = 0
    private var endOffset = 0
    private var readers: [BodyChain.ReaderID: Reader] = [:]
    private var lastReader = 0
    /// The requests that were told of the body and have neither joined nor declined it.
    ///
    /// One until their number is known, so that the body is not given up before.
    private var awaitedReaders = 1
    /// The greatest offset of any reader.
    private var fastestOffset = 0
    private var sleepers = WaitingLine<Waiter>()
    private var writer: Waiter?

    init(windowBytes: Int) {
        precondition(windowBytes > 0)
        self.windowBytes = windowBytes
    }

    /// The number of readers.
    var readerCount: Int { readers.count }

    /// The number of bytes in memory.
    var heldBytes: Int { endOffset - firstOffset }

    /// Whether the writer waits because the readers do not read on.
    var isHeldUpByReaders: Bool { writer != nil && !readers.isEmpty }

    /// Whether the body has not ended.
    var isOpen: Bool {
        if case .open = ending { return true }
        return false
    }

    /// Whether there is no reader and none is expected.
    private var isDeserted: Bool { readers.isEmpty && awaitedReaders <= 0 }

    /// The end of the bytes that can still be read back after storing stopped.
    private var remainsEnd: Int {
        if case .passing(let remains?) = mode { remains.end } else { 0 }
    }

    /// The chunks of a body that is complete and in memory.
    var completeChunks: [ByteChunk]? {
        guard case .complete = ending, firstOffset == 0 else { return nil }
        return chunks
    }
}

extension GrowingBody: Sendable where Waiter: Sendable {}

// MARK: - Writing

extension GrowingBody {
    /// Appends bytes; does nothing after the end.
    mutating func append(_ chunk: ByteChunk) -> Woken {
        guard isOpen, !chunk.isEmpty else { return Woken() }
        chunks.append(chunk)
        chunkOffsets.append(endOffset)
        endOffset += chunk.count
        assert(chunkOffsets.count == chunks.count)
        trim()
        return everyone()
    }

    /// From now on drops the chunks behind the window: `reader` reads them back.
    mutating func spill(_ reader: @escaping BodyChain.SpillReader) -> Woken {
        mode = .spilled(reader)
        trim()
        return everyone()
    }

    /// From now on keeps nothing for later readers.
    mutating func pass() -> Woken {
        if case .spilled(let reader) = mode {
            mode = .passing(Remains(reader: reader, end: firstOffset))
        } else {
            mode = .passing(nil)
        }
        trim()
        return everyone()
    }

    /// Awaits `count` more requests that were told of the body; each joins it or declines it.
    mutating func awaitReaders(more count: Int) -> Woken {
        awaitedReaders += count
        return Woken(writer: writerWithRoom())
    }

    /// A request that was told of the body does not read it.
    mutating func decline() -> Woken {
        awaitedReaders -= 1
        return Woken(writer: writerWithRoom())
    }

    /// Marks the body as complete; only the first end counts.
    mutating func finish() -> Woken { end(.complete) }

    /// Ends the body with an error; only the first end counts.
    mutating func fail(_ error: any Error) -> Woken { end(.broken(error)) }

    private mutating func end(_ ending: Ending) -> Woken {
        if isOpen { self.ending = ending }
        return everyone()
    }

    /// Lets the writer wait; returns `false` if it need not.
    mutating func park(writer waiter: Waiter) -> Bool {
        guard !isRoomy else { return false }
        writer = waiter
        return true
    }

    /// Whether the writer goes on: the body is open, and is kept or read.
    var isWanted: Bool {
        guard isOpen else { return false }
        guard case .passing = mode else { return true }
        return !isDeserted
    }

    /// Ends the writer's wait, whether there is room or not.
    mutating func stopWaiting() -> Waiter? { writer.take() }

    private mutating func writerWithRoom() -> Waiter? { isRoomy ? writer.take() : nil }

    private mutating func everyone() -> Woken {
        var woken = Woken()
        woken.readers.reserveCapacity(sleepers.count)
        sleepers.removeAll { _, sleeper in woken.readers.append(copy sleeper) }
        woken.writer = writerWithRoom()
        return woken
    }

    /// Whether the fastest reader is less than a window behind, or the writer need not know.
    private var isRoomy: Bool {
        guard case .passing = mode, isOpen else { return true }
        if isDeserted || Mutant.waitsForNoReader.isOn { return true }
        return endOffset - fastestOffset < windowBytes
    }
}

// MARK: - Reading

extension GrowingBody {
    /// Adds a reader of the bytes from `offset`; returns `nil` if they were dropped, or if the body
    /// broke off and `party` may still ask for itself.
    mutating func join(at offset: Int, _ party: BodyChain.Party) -> BodyChain.ReaderID? {
        if case .broken = ending, party == .follower { return nil }
        if case .passing = mode, offset < firstOffset { return nil }
        lastReader += 1
        awaitedReaders -= 1
        readers[lastReader] = Reader(offset: offset)
        // Otherwise a reader of a later part would wait for a writer that waits for a reader.
        fastestOffset = max(fastestOffset, offset)
        return lastReader
    }

    /// The next bytes for a reader at `offset` that needs none beyond `limit`.
    mutating func step(
        _ reader: BodyChain.ReaderID,
        at offset: Int,
        limit: Int
    ) -> (step: BodyChain.Step, writer: Waiter?) {
        guard let place = readers[reader], !place.isCutOff else {
            return (.failed(Self.tooSlow), nil)
        }
        let step = next(at: offset, limit: limit)
        if case .chunk(let chunk) = step { move(reader, to: offset + chunk.count) }
        return (step, writerWithRoom())
    }

    /// A reader has got the bytes up to `offset`.
    mutating func move(_ reader: BodyChain.ReaderID, to offset: Int) {
        guard readers[reader] != nil else { return }
        readers[reader]?.offset = offset
        fastestOffset = max(fastestOffset, offset)
    }

    /// Lets a reader wait for bytes beyond `offset`; returns `false` if it need not.
    mutating func park(
        _ reader: BodyChain.ReaderID,
        beyond offset: Int,
        _ waiter: Waiter
    ) -> Bool {
        guard let place = readers[reader], !place.isCutOff, isOpen, endOffset <= offset else {
            return false
        }
        readers[reader]?.sleep = sleepers.enter(waiter)
        return true
    }

    /// Ends the wait of a reader.
    mutating func wakeUp(_ reader: BodyChain.ReaderID) -> Waiter? {
        guard let ticket = readers[reader]?.sleep.take() else { return nil }
        return sleepers.leave(ticket)
    }

    /// Removes a reader.
    mutating func leave(_ reader: BodyChain.ReaderID) -> Woken {
        let sleeper = wakeUp(reader).map { [$0] } ?? []
        let place = readers.removeValue(forKey: reader)
        // After the end the writer does not wait, and no more bytes arrive.
        guard isOpen else { return Woken(readers: sleeper) }
        if let place, place.offset >= fastestOffset {
            fastestOffset = readers.values.lazy.map(\.offset).max() ?? place.offset
        }
        trim()
        return Woken(readers: sleeper, writer: writerWithRoom())
    }

    private static var tooSlow: CacheError {
        CacheError(
            .readerTooSlow,
            detail: "This reader is too far behind the others, and the body is not stored; "
                + "read faster, or raise originLimits.windowSize"
        )
    }

    private func next(at offset: Int, limit: Int) -> BodyChain.Step {
        if offset >= limit { return .end }
        if offset < firstOffset {
            if case .broken(let error) = ending { return .failed(error) }
            switch mode {
            case .spilled(let reader):
                return .readBack(reader, offset..<min(limit, firstOffset))
            case .passing(let remains?) where offset < remains.end:
                return .readBack(remains.reader, offset..<min(limit, remains.end))
            case .whole, .passing: return .failed(Self.tooSlow)
            }
        }
        if offset < endOffset { return .chunk(chunk(at: offset, limit: limit)) }
        switch ending {
        case .open: return .wait
        case .complete: return .end
        case .broken(let error): return .failed(error)
        }
    }

    private func chunk(at offset: Int, limit: Int) -> ByteChunk {
        // The last chunk that begins at or before the offset.
        var low = 0
        var high = chunkOffsets.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if chunkOffsets[middle] <= offset { low = middle } else { high = middle }
        }
        let chunk = chunks[low]
        // A reader's limit may be any announced length, so nothing is added to it.
        let start = offset - chunkOffsets[low]
        return chunk[start..<min(chunk.count, limit - chunkOffsets[low])]
    }
}

// MARK: - The window

extension GrowingBody {
    /// Drops the chunks behind the window, or those that no reader needs.
    private mutating func trim() {
        defer { checkInvariants() }
        switch mode {
        case .whole: return
        case .spilled: drop(before: endOffset - windowBytes)
        case .passing where lastReader == 0 && awaitedReaders > 0: return
        case .passing: drop(before: cutOff())
        }
    }

    /// Cuts off the readers that are too slow.
    ///
    /// - Returns: The offset of the slowest other reader, or one window behind the end if that is
    ///   less. A reader that was told of the body but has not started must find its beginning as
    ///   long as possible.
    private mutating func cutOff() -> Int {
        let limit = min(fastestOffset, endOffset) - windowBytes
        var slowest = endOffset - windowBytes
        // A reader that reads back written bytes holds no memory.
        for (id, place) in readers where !place.isCutOff && place.offset >= remainsEnd {
            if place.offset < limit {
                readers[id]?.isCutOff = true
            } else {
                slowest = min(slowest, place.offset)
            }
        }
        return slowest
    }

    private mutating func drop(before offset: Int) {
        var dropped = 0
        while dropped < chunks.count, chunkOffsets[dropped] + chunks[dropped].count <= offset {
            dropped += 1
        }
        guard dropped > 0 else { return }
        firstOffset = chunkOffsets[dropped - 1] + chunks[dropped - 1].count
        chunks.removeFirst(dropped)
        chunkOffsets.removeFirst(dropped)
    }

    func checkInvariants() {
        #if ENGINE_CHECKS
            var offset = firstOffset
            for (chunk, start) in zip(chunks, chunkOffsets) {
                precondition(start == offset)
                offset += chunk.count
            }
            precondition(offset == endOffset)
            precondition(sleepers.count <= readers.count)
            if case .whole = mode { precondition(firstOffset == 0) }
        #endif
    }
}
