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
/// *passing* (not stored) the writer stays within a window of every reader that reads, so that none
/// cuts off another. A reader that has not asked for a byte yet, or that has stood still for too
/// long, holds up nobody: once it is a window behind the fastest it is cut off. The window bounds
/// memory in the last two modes. The writer of a passing body ends once no reader needs more bytes,
/// also if one that has all its bytes, or is cut off, has not left. A reader that lags behind when a
/// spilled body stops being stored still gets every byte already written. After its end, a body
/// holds what its readers have yet to take.
///
/// In a `shortage` of memory for the readers of all bodies, the window is small, and the writer of a
/// whole body waits for its slowest reader. Once that has taken too long the body is *overdue*: its
/// writer stops storing it.
///
/// Each change returns the waiters that it ends, and the caller wakes them.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. `chunks` cover `firstOffset..<endOffset` without a gap.
/// 2. While whole and open, `firstOffset` is 0.
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

    /// Whether memory is short, as the caller saw it before the current change.
    var shortage = BodyBudget.Shortage()
    /// Whether the readers have held up the writer of a whole body for too long.
    private(set) var isOverdue = false

    private let windowBytes: Int
    /// The window in a shortage.
    private let leastWindowBytes: Int
    private var mode = Mode.whole
    private var ending = Ending.open
    private var chunks: [ByteChunk] = []
    private var chunkOffsets: [Int] = []
    private var firstOffset = 0
    private var endOffset = 0
    private var readers = BodyReaders()
    /// The requests that were told of the body and have neither joined nor declined it.
    ///
    /// One until their number is known, so that the body is not given up before.
    private var awaitedReaders = 1
    private var sleepers = WaitingLine<Waiter>()
    private var writer: Waiter?
    /// When the watchdog looked last.
    private var lookedNanoseconds: UInt64?
    /// The time for which the writer of a whole body was seen waiting.
    private var heldUpNanoseconds: UInt64 = 0

    init(windowBytes: Int, leastWindowBytes: Int = BodyLimits.usualLeastBytes) {
        precondition(windowBytes > 0 && leastWindowBytes > 0)
        self.windowBytes = windowBytes
        self.leastWindowBytes = min(windowBytes, leastWindowBytes)
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

    private var isPassing: Bool {
        if case .passing = mode { return true }
        return false
    }

    private var isSpilled: Bool {
        if case .spilled = mode { return true }
        return false
    }

    /// The window as far as memory allows it now.
    private var currentWindowBytes: Int {
        shortage.isForReaders ? leastWindowBytes : windowBytes
    }

    /// Whether no reader needs more bytes and none is expected.
    private var isDeserted: Bool {
        guard awaitedReaders <= 0 else { return false }
        return Mutant.writesForDoneReaders.isOn ? readers.isEmpty : !readers.needsBytes
    }

    /// The end of the bytes that can still be read back after storing stopped.
    private var remainsEnd: Int {
        if case .passing(let remains?) = mode { remains.end } else { 0 }
    }

    /// Whether the body was kept until it was complete, and no longer has its beginning.
    var isLetGo: Bool {
        guard case .whole = mode, case .complete = ending else { return false }
        return firstOffset > 0
    }

    /// The bytes that the readers have yet to take; those that have not come are not counted.
    private mutating func lagBytes() -> Int {
        max(0, endOffset - (readers.neededOffset() ?? endOffset))
    }

    /// The bytes in memory that are kept for readers, whether the store needs them too or not.
    mutating func owedBytes() -> Int {
        if case .whole = mode, isOpen { return lagBytes() }
        return heldBytes
    }
}

extension GrowingBody: Sendable where Waiter: Sendable {}

extension GrowingBody.Woken: Sendable where Waiter: Sendable {}

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
        assert(!isPassing, "a body that passes is not stored again")
        mode = .spilled(reader)
        trim()
        return everyone()
    }

    /// From now on keeps nothing for later readers.
    mutating func pass() -> Woken {
        switch mode {
        case .passing: return Woken()
        case .spilled(let reader):
            mode = .passing(Remains(reader: reader, end: firstOffset))
            readers.floor = firstOffset
        case .whole: mode = .passing(nil)
        }
        trim()
        return everyone()
    }

    /// Awaits `count` more requests that were told of the body; each joins it or declines it.
    mutating func awaitReaders(more count: Int) -> Woken {
        awaitedReaders += count
        if !isOpen { dropTaken() }
        return Woken(writer: writerWithRoom())
    }

    /// A request that was told of the body does not read it.
    mutating func decline() -> Woken {
        awaitedReaders -= 1
        if !isOpen { dropTaken() }
        return Woken(writer: writerWithRoom())
    }

    /// Marks the body as complete; only the first end counts.
    mutating func finish() -> Woken { end(.complete) }

    /// Ends the body with an error; only the first end counts.
    mutating func fail(_ error: any Error) -> Woken { end(.broken(error)) }

    private mutating func end(_ ending: Ending) -> Woken {
        if isOpen { self.ending = ending }
        trim()
        return everyone()
    }

    /// Lets the writer wait; returns `false` if it need not.
    mutating func park(writer waiter: Waiter) -> Bool {
        guard !isRoomy() else { return false }
        assert(writer == nil, "there is one writer, and it waits once")
        writer = waiter
        return true
    }

    /// Whether the writer goes on: the body is open, and is kept or has a reader that needs more.
    var needsBytes: Bool {
        guard isOpen else { return false }
        guard case .passing = mode else { return true }
        return !isDeserted
    }

    /// Ends the writer's wait, whether there is room or not.
    mutating func stopWaiting() -> Waiter? { writer.take() }

    private mutating func writerWithRoom() -> Waiter? {
        guard writer != nil, isRoomy() else { return nil }
        return writer.take()
    }

    private mutating func everyone() -> Woken {
        var woken = Woken()
        woken.readers.reserveCapacity(sleepers.count)
        sleepers.removeAll { _, sleeper in woken.readers.append(copy sleeper) }
        woken.writer = writerWithRoom()
        return woken
    }

    /// Whether every reader that reads is less than a window behind, or the writer need not know.
    ///
    /// If none reads, one that stands still, or has yet to come, holds up the writer of a body that
    /// is not stored. The writer of a whole body waits for the readers that have come, reading or
    /// not, while memory is short: it would keep all bytes for them.
    mutating func isRoomy() -> Bool {
        guard isOpen else { return true }
        switch mode {
        case .spilled: return true
        case .whole:
            guard shortage.isForReaders, !isOverdue, !Mutant.runsAheadOfSlowReaders.isOn else {
                return true
            }
            return lagBytes() < leastWindowBytes
        case .passing:
            if isDeserted || Mutant.waitsForNoReader.isOn { return true }
            return endOffset - (readers.rearPlace() ?? readers.fastestOffset) < currentWindowBytes
        }
    }

    /// Lets the writer wait no longer for the readers that have stood still for so long, nor, if
    /// the body is whole, for any that has held it up for so long.
    mutating func dismissStill(
        for limitNanoseconds: UInt64,
        nowNanoseconds: UInt64
    ) -> Woken {
        let looked = lookedNanoseconds ?? nowNanoseconds
        lookedNanoseconds = nowNanoseconds
        guard writer != nil else { return Woken() }
        // The shortage may have ended.
        if let writer = writerWithRoom() { return Woken(writer: writer) }
        switch mode {
        case .spilled: return Woken()
        case .whole:
            heldUpNanoseconds += max(nowNanoseconds, looked) - looked
            // Others wait for the memory that this body takes from the store.
            isOverdue = heldUpNanoseconds >= limitNanoseconds || shortage.isForStore
            if Mutant.holdsUpTheStoreForEver.isOn { isOverdue = false }
            return Woken(writer: writerWithRoom())
        case .passing:
            guard !Mutant.waitsForStillReaders.isOn else { return Woken() }
            let isOne = readers.noteStill(
                upTo: endOffset - currentWindowBytes,
                for: limitNanoseconds,
                nowNanoseconds: nowNanoseconds
            )
            guard isOne else { return Woken() }
            trim()
            return Woken(writer: writerWithRoom())
        }
    }
}

// MARK: - Reading

extension GrowingBody {
    /// Adds a reader of the bytes from `offset`; returns `nil` if they were dropped, or if `party`
    /// may still ask for itself and the body broke off, or passes and is more than a window away
    /// from them.
    mutating func join(at offset: Int, _ party: BodyChain.Party) -> BodyChain.ReaderID? {
        if case .broken = ending, party == .follower { return nil }
        if offset < firstOffset, !isSpilled { return nil }
        if case .passing = mode {
            let isFar = offset - endOffset > windowBytes && !Mutant.joinsFarParts.isOn
            if isFar, party == .follower { return nil }
        }
        awaitedReaders -= 1
        return readers.add(at: offset)
    }

    /// The chunks of a body that is complete and in memory, for a request that needs no place among
    /// the readers then; `nil` if it needs one, because it would hold many chunks.
    mutating func takeWhole() -> [ByteChunk]? {
        guard case .complete = ending, firstOffset == 0,
            chunks.count <= 1 || endOffset <= leastWindowBytes
        else { return nil }
        let whole = chunks
        awaitedReaders -= 1
        dropTaken()
        return whole
    }

    /// The next bytes for a reader at `offset` that needs none beyond `limit`.
    mutating func step(
        _ reader: BodyChain.ReaderID,
        at offset: Int,
        limit: Int
    ) -> (step: BodyChain.Step, writer: Waiter?) {
        // It has all its bytes, so nothing that was dropped meanwhile concerns it.
        if offset >= limit { return (.end, nil) }
        guard let place = readers[reader], !place.isCutOff else {
            return (.failed(Self.tooSlow), nil)
        }
        // A reader whose next bytes in memory were dropped gets an error there in any case.
        if !isPassing || max(offset, remainsEnd) >= firstOffset { readers.begin(reader) }
        let step = next(at: offset, limit: limit)
        if case .chunk(let chunk) = step {
            assert(!chunk.isEmpty && chunk.count <= endOffset - offset, "bytes that have arrived")
            readers.move(reader, to: offset + chunk.count, limit: limit)
            if !isOpen || isSpilled { dropTaken() }
        }
        return (step, writerWithRoom())
    }

    /// A reader that needs no bytes from `limit` on has got those up to `offset`.
    ///
    /// - Returns: The writer, if it need not wait any longer.
    mutating func move(
        _ reader: BodyChain.ReaderID,
        to offset: Int,
        limit: Int
    ) -> Waiter? {
        readers.move(reader, to: offset, limit: limit)
        if !isOpen || isSpilled { dropTaken() }
        return writerWithRoom()
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
        readers.setSleep(sleepers.enter(waiter), of: reader)
        return true
    }

    /// Ends the wait of a reader.
    mutating func wakeUp(_ reader: BodyChain.ReaderID) -> Waiter? {
        guard let ticket = readers[reader]?.sleep else { return nil }
        readers.setSleep(nil, of: reader)
        return sleepers.leave(ticket)
    }

    /// Removes a reader.
    mutating func leave(_ reader: BodyChain.ReaderID) -> Woken {
        let sleeper = wakeUp(reader).map { [$0] } ?? []
        readers.remove(reader, end: isOpen ? endOffset : nil)
        // After the end the writer does not wait, and no more bytes arrive.
        guard isOpen else {
            dropTaken()
            return Woken(readers: sleeper)
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
        assert(
            (chunkOffsets[low]..<chunkOffsets[low] + chunk.count).contains(offset),
            "the chunk has the offset"
        )
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
        guard isOpen else { return dropTaken() }
        switch mode {
        case .whole: return
        case .spilled: dropTaken()
        case .passing where readers.lastID == 0 && awaitedReaders > 0: return
        case .passing:
            let fastest = min(readers.fastestOffset, endOffset)
            // A reader that was told of the body but has not started must find its beginning as
            // long as possible. Without the beginning, the window is of no use to it.
            let ahead = awaitedReaders > 0 ? windowBytes : currentWindowBytes
            let slowest = readers.cutOff(
                before: fastest - windowBytes,
                stillBefore: fastest - currentWindowBytes,
                front: firstOffset == 0 ? endOffset - ahead : endOffset
            )
            drop(before: slowest)
        }
    }

    /// Drops the chunks that all readers have taken, and in a spilled body those behind the window.
    ///
    /// The requests that were told of the body, and have not come, need all that there is.
    private mutating func dropTaken() {
        var limit = awaitedReaders > 0 ? 0 : readers.neededOffset() ?? endOffset
        if isSpilled { limit = max(limit, endOffset - currentWindowBytes) }
        drop(before: limit)
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
            if case .whole = mode, isOpen { precondition(firstOffset == 0) }
            readers.checkInvariants()
        #endif
    }
}
