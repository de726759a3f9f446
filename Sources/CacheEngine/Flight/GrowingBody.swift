/// A body while it arrives, as a value: its bytes, the places of its readers, and those that wait.
///
/// Any number of readers follow it at their own pace. The modes are those of `ArrivedBytes`.
///
/// While *whole*, every chunk is kept, for readers and for the entry that will be stored. Once
/// *spilled*, chunks behind the window are dropped. In both modes a reader may start at byte 0.
/// While *passing* (not stored), no reader joins before a dropped byte, and the writer stays within
/// a window of every reader that reads, so that none cuts off another.
///
/// A reader of a passing body that has not asked for a byte yet, or that has stood still for too
/// long, does not hold up the writer. It is cut off once it is a window behind the fastest. The
/// window bounds memory in the last two modes. The writer of a passing body ends once no reader
/// needs more bytes, also if one that has all its bytes, or is cut off, has not left. A reader that
/// lags behind when a spilled body stops being stored still gets every byte already written. After
/// its end, a body holds what its readers have yet to take.
///
/// In a `shortage` of memory for the readers of all bodies, the window is small, and the writer of a
/// whole body waits for its slowest reader. Once that has taken too long the body is *overdue*: its
/// writer stops storing it.
///
/// Each change returns the waiters that it ends, and the caller wakes them.
///
/// Invariant, checked by `checkInvariants()`: each sleeper is a reader, and each reader sleeps at
/// most once.
struct GrowingBody<Waiter> {
    /// The waiters that a change ends.
    struct Woken {
        var readers: [Waiter] = []
        var writer: Waiter?
    }

    /// Whether memory is short, as the caller saw it before the current change.
    var shortage = BodyBudget.Shortage()
    /// Whether the readers have held up the writer of a whole body for too long.
    private(set) var isOverdue = false

    private let windowBytes: Int
    /// The window in a shortage.
    private let leastWindowBytes: Int
    private var bytes = ArrivedBytes()
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

    /// The readers that were looked at so far to find the bytes to drop; each look counts them anew.
    var lookedAtCount: Int { readers.lookedAtCount }

    /// The number of bytes in memory.
    var heldBytes: Int { bytes.heldBytes }

    /// Whether the writer waits because the readers do not read on.
    var isHeldUpByReaders: Bool { writer != nil && !readers.isEmpty }

    /// Whether the body has not ended.
    var isOpen: Bool { bytes.isOpen }

    /// Whether the body was kept until it was complete, and no longer has its beginning.
    var isLetGo: Bool { bytes.isLetGo }

    /// The window as far as memory allows it now.
    private var currentWindowBytes: Int {
        shortage.isForReaders ? leastWindowBytes : windowBytes
    }

    /// Whether no reader needs more bytes and none is expected.
    private var isDeserted: Bool {
        guard awaitedReaders <= 0 else { return false }
        return Mutant.writesForDoneReaders.isOn ? readers.isEmpty : !readers.needsBytes
    }

    /// The bytes that the readers have yet to take; those that have not come are not counted.
    private mutating func lagBytes() -> Int {
        max(0, bytes.endOffset - (readers.neededOffset() ?? bytes.endOffset))
    }

    /// The bytes in memory that are kept for readers, whether the store needs them too or not.
    mutating func owedBytes() -> Int {
        if case .whole = bytes.mode, isOpen { return lagBytes() }
        return heldBytes
    }
}

extension GrowingBody: Sendable where Waiter: Sendable {}

extension GrowingBody.Woken: Sendable where Waiter: Sendable {}

// MARK: - Writing

extension GrowingBody {
    /// Appends bytes; does nothing after the end.
    ///
    /// `joined`, if given, has them after those of the chunk before, and takes its place.
    mutating func append(_ chunk: ByteChunk, joined: ByteChunk? = nil) -> Woken {
        guard isOpen, !chunk.isEmpty else { return Woken() }
        bytes.append(chunk, joined: joined)
        trim()
        return everyone()
    }

    /// From now on drops the chunks behind the window: `reader` reads them back.
    mutating func spill(_ reader: @escaping BodyChain.SpillReader) -> Woken {
        bytes.spill(reader)
        trim()
        return everyone()
    }

    /// From now on keeps nothing for later readers.
    mutating func pass() -> Woken {
        guard !bytes.isPassing else { return Woken() }
        bytes.pass()
        readers.floor = bytes.remainsEnd
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

    /// Ends the body of a fetch that was given up; only the first end counts.
    mutating func abandon(_ error: any Error) -> Woken { end(.abandoned(error)) }

    /// Abandons the body if no reader needs more of it and it is not kept.
    ///
    /// - Returns: Whether it was such a body; it has no waiters.
    mutating func failIfDeserted(_ error: any Error) -> Bool {
        guard isOpen, !needsBytes, writer == nil, !Mutant.waitsForSilentOrigins.isOn else {
            return false
        }
        let woken = abandon(error)
        assert(woken.readers.isEmpty && woken.writer == nil, "a waiter needs bytes")
        return true
    }

    private mutating func end(_ ending: ArrivedBytes.Ending) -> Woken {
        bytes.end(ending)
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
        guard case .passing = bytes.mode else { return true }
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
        sleepers.takeAll().forEach { _, sleeper in woken.readers.append(sleeper) }
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
        switch bytes.mode {
        case .spilled: return true
        case .whole:
            guard shortage.isForReaders, !isOverdue, !Mutant.runsAheadOfSlowReaders.isOn else {
                return true
            }
            return lagBytes() < leastWindowBytes
        case .passing:
            if isDeserted || Mutant.waitsForNoReader.isOn { return true }
            let rear = readers.rearPlace() ?? readers.fastestOffset(end: bytes.endOffset)
            return bytes.endOffset - rear < currentWindowBytes
        }
    }

    /// Ends the writer's wait for readers that have taken nothing for `limitNanoseconds`; of a whole
    /// body, for all readers once they have held it up for that long.
    mutating func dismissStill(
        for limitNanoseconds: UInt64,
        nowNanoseconds: UInt64
    ) -> Woken {
        let looked = lookedNanoseconds ?? nowNanoseconds
        lookedNanoseconds = nowNanoseconds
        guard writer != nil else { return Woken() }
        // The shortage may have ended.
        if let writer = writerWithRoom() { return Woken(writer: writer) }
        switch bytes.mode {
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
                upTo: bytes.endOffset - currentWindowBytes,
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
    /// Adds a reader of the bytes from `offset`; returns `nil` if those bytes were dropped.
    ///
    /// A follower, which can still ask for itself, also gets `nil` if the body was abandoned, or if
    /// it is not stored and still more than a window before `offset`. Of a body that broke off it
    /// reads what is in memory and the error: the crowd that waited would ask the origin all at once.
    mutating func join(at offset: Int, _ party: BodyChain.Party) -> BodyChain.ReaderID? {
        if party == .follower {
            switch bytes.ending {
            case .abandoned: return nil
            case .broken where Mutant.asksForEachBrokenBody.isOn: return nil
            case .open, .complete, .broken: break
            }
        }
        if offset < bytes.firstOffset, !bytes.isSpilled { return nil }
        if case .passing = bytes.mode {
            let isFar = offset - bytes.endOffset > windowBytes && !Mutant.joinsFarParts.isOn
            if isFar, party == .follower { return nil }
        }
        awaitedReaders -= 1
        return readers.add(at: offset)
    }

    /// The chunks of a body that is complete and in memory, for a request that needs no place among
    /// the readers then; `nil` if it needs one, because it would hold many chunks.
    mutating func takeWhole() -> [ByteChunk]? {
        guard let whole = bytes.allChunks,
            whole.count <= 1 || bytes.endOffset <= leastWindowBytes
        else { return nil }
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
            return (.failed(ArrivedBytes.readerTooSlow), nil)
        }
        // A reader whose next bytes in memory were dropped gets an error there in any case.
        if !bytes.isPassing || max(offset, bytes.remainsEnd) >= bytes.firstOffset {
            readers.begin(reader)
        }
        let step = bytes.next(at: offset, limit: limit)
        if case .chunk(let chunk) = step {
            assert(
                !chunk.isEmpty && chunk.count <= bytes.endOffset - offset,
                "bytes that have arrived"
            )
            readers.move(reader, to: offset + chunk.count, limit: limit)
            if !isOpen || bytes.isSpilled { dropTaken() }
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
        if !isOpen || bytes.isSpilled { dropTaken() }
        return writerWithRoom()
    }

    /// Lets a reader wait for bytes beyond `offset`; returns `false` if it need not.
    mutating func park(
        _ reader: BodyChain.ReaderID,
        beyond offset: Int,
        _ waiter: Waiter
    ) -> Bool {
        guard let place = readers[reader], !place.isCutOff, isOpen, bytes.endOffset <= offset else {
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
        let isLast = readers.isLast(reader)
        readers.remove(reader, end: isOpen ? bytes.endOffset : nil)
        if isLast { trim() }
        // After the end the writer does not wait, and no more bytes arrive.
        return Woken(readers: sleeper, writer: isOpen ? writerWithRoom() : nil)
    }
}

// MARK: - The window

extension GrowingBody {
    /// Drops the chunks behind the window, or those that no reader needs.
    private mutating func trim() {
        defer { checkInvariants() }
        guard isOpen else { return dropTaken() }
        switch bytes.mode {
        case .whole: return
        case .spilled: dropTaken()
        case .passing where readers.lastID == 0 && awaitedReaders > 0: return
        case .passing:
            let end = bytes.endOffset
            let fastest = min(readers.fastestOffset(end: end), end)
            // A reader that was told of the body but has not started must find its beginning as
            // long as possible. Without the beginning, the window is of no use to it.
            let ahead = awaitedReaders > 0 ? windowBytes : currentWindowBytes
            let slowest = readers.cutOff(
                before: fastest - windowBytes,
                stillBefore: fastest - currentWindowBytes,
                front: bytes.firstOffset == 0 ? end - ahead : end
            )
            bytes.drop(before: slowest)
        }
    }

    /// Drops the chunks that all readers have taken, and in a spilled body those behind the window.
    ///
    /// The requests that were told of the body, and have not come, need all that there is.
    private mutating func dropTaken() {
        var limit = awaitedReaders > 0 ? 0 : readers.neededOffset() ?? bytes.endOffset
        if bytes.isSpilled { limit = max(limit, bytes.endOffset - currentWindowBytes) }
        bytes.drop(before: limit)
    }

    func checkInvariants() {
        #if ENGINE_CHECKS
            precondition(sleepers.count <= readers.count)
            bytes.checkInvariants()
            readers.checkInvariants()
        #endif
    }
}
