import Synchronization

/// The body of a flight while it arrives: an append-only run of chunks.
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
/// Invariants, checked by `checkInvariants()`:
/// 1. `chunks` cover `firstOffset..<endOffset` without a gap.
/// 2. While whole, `firstOffset` is 0.
/// 3. Each sleeper is a reader, and each reader sleeps at most once.
final class BodyChain: Sendable {
    /// Reads bytes that were written to the store and that the chain may have dropped.
    typealias SpillReader = @Sendable (Range<Int>) async throws -> ByteChunk
    typealias ReaderID = Int
    private typealias Continuation = UnsafeContinuation<Void, Never>

    private enum Mode {
        case whole
        case spilled(SpillReader)
        case passing(Remains?)
    }

    /// The written part of a body that stopped being stored.
    private struct Remains {
        let reader: SpillReader
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
        var sleep: WaitingLine<Continuation>.Ticket?
        var isCutOff = false
    }

    private struct State {
        var mode = Mode.whole
        var ending = Ending.open
        var chunks: [ByteChunk] = []
        var chunkOffsets: [Int] = []
        var firstOffset = 0
        var endOffset = 0
        var readers: [ReaderID: Reader] = [:]
        var lastReader = 0
        /// The readers that were told of the body and have not declined it; they count until the
        /// first one has come.
        var awaitedReaders = 1
        /// The greatest offset of any reader.
        var fastestOffset = 0
        var sleepers = WaitingLine<Continuation>()
        var writer: Continuation?

        var isOpen: Bool {
            if case .open = ending { return true }
            return false
        }

        /// Whether there is no reader and none is expected.
        var isDeserted: Bool { readers.isEmpty && (lastReader > 0 || awaitedReaders <= 0) }

        /// The end of the bytes that can still be read back after storing stopped.
        var remainsEnd: Int {
            if case .passing(let remains?) = mode { remains.end } else { 0 }
        }
    }

    /// The announced length of the whole body.
    let expectedCount: Int?
    private let windowBytes: Int
    private let state = Mutex(State())

    init(expectedCount: Int?, windowBytes: Int) {
        precondition(windowBytes > 0)
        self.expectedCount = expectedCount
        self.windowBytes = windowBytes
    }

    /// The number of readers.
    var readerCount: Int { state.withLock { $0.readers.count } }

    /// The number of bytes in memory.
    var heldBytes: Int { state.withLock { $0.endOffset - $0.firstOffset } }

    /// Whether the writer waits because the readers do not read on.
    var isHeldUpByReaders: Bool { state.withLock { $0.writer != nil && !$0.readers.isEmpty } }

    // MARK: Writing

    /// Appends bytes and wakes the readers that wait for them; does nothing after the end.
    func append(_ chunk: ByteChunk) {
        guard !chunk.isEmpty else { return }
        change { state in
            guard state.isOpen else { return }
            state.chunks.append(chunk)
            state.chunkOffsets.append(state.endOffset)
            state.endOffset += chunk.count
            assert(state.chunkOffsets.count == state.chunks.count)
            trim(&state)
        }
    }

    /// From now on drops the chunks behind the window: `reader` reads them back.
    func spill(_ reader: @escaping SpillReader) {
        change { state in
            state.mode = .spilled(reader)
            trim(&state)
        }
    }

    /// From now on keeps nothing for later readers.
    func pass() {
        change { state in
            if case .spilled(let reader) = state.mode {
                state.mode = .passing(Remains(reader: reader, end: state.firstOffset))
            } else {
                state.mode = .passing(nil)
            }
            trim(&state)
        }
    }

    /// Sets how many readers are going to be told of the body.
    ///
    /// A writer that does not store the body waits for them until all have declined it.
    func awaitReaders(_ count: Int) { change { $0.awaitedReaders = count } }

    /// Declares that a reader that was told of the body does not come.
    func decline() { change { $0.awaitedReaders -= 1 } }

    /// Marks the body as complete.
    func finish() { end(.complete) }

    /// Ends the body with an error.
    ///
    /// A `CancellationError` is replaced: no reader may mistake another task's cancellation for its
    /// own.
    func fail(_ error: any Error) {
        let gone = CacheError(.originFailed, detail: "The fetch of this body was cancelled")
        if Mutant.endsBrokenBodiesCleanly.isOn { return end(.complete) }
        end(.broken(error is CancellationError ? gone : error))
    }

    /// Ends the body; only the first call counts.
    private func end(_ ending: Ending) {
        change { state in
            if state.isOpen { state.ending = ending }
        }
    }

    /// Suspends while the fastest reader is a whole window behind.
    ///
    /// - Returns: `false` if all readers have left and nothing is kept, or if the body has ended.
    func waitForRoom() async -> Bool {
        await withUnsafeContinuation { continuation in
            let mayGoOn = state.withLock { state in
                if isRoomy(state) || Task.isCancelled { return true }
                state.writer = continuation
                return false
            }
            if mayGoOn { continuation.resume() }
        }
        return state.withLock { state in
            guard state.isOpen else { return false }
            guard case .passing = state.mode else { return true }
            return !state.isDeserted
        }
    }

    /// Ends the writer's wait after its task was cancelled.
    func stopWaiting() { state.withLock { $0.writer.take() }?.resume() }

    // MARK: Reading

    /// A stream of the bytes of `range`; `nil` if its beginning was dropped or the body broke off.
    func stream(_ range: Range<Int>? = nil, for party: Party = .follower) -> BodyStream? {
        if range == nil, let complete { return complete }
        let lower = range?.lowerBound ?? 0
        let reader = state.withLock { state -> ReaderID? in
            // The request that was sent gets the error; a follower may still send its own request.
            if case .broken = state.ending, party == .follower { return nil }
            if case .passing = state.mode, lower < state.firstOffset { return nil }
            state.lastReader += 1
            state.readers[state.lastReader] = Reader(offset: lower)
            // Otherwise a reader of a later part would wait for a writer that waits for a reader.
            state.fastestOffset = max(state.fastestOffset, lower)
            return state.lastReader
        }
        guard let reader else { return nil }
        let source = BodyChainReader(self, id: reader, range: lower..<(range?.upperBound ?? .max))
        return BodyStream(source, count: range?.count ?? expectedCount)
    }

    /// The whole body without a reader in the chain; `nil` until it is complete and in memory.
    private var complete: BodyStream? {
        state.withLock { state in
            guard case .complete = state.ending, state.firstOffset == 0 else { return nil }
            if state.chunks.count == 1 { return BodyStream(state.chunks[0]) }
            return BodyStream(parts: state.chunks.map { BodyStream($0) })
        }
    }

    /// The request for which a body is read.
    enum Party {
        /// The request that was sent to the origin.
        case asker
        case follower
    }

    enum Step {
        case chunk(ByteChunk)
        case readBack(SpillReader, Range<Int>)
        case end
        case failed(any Error)
        case wait
    }

    /// The next bytes for a reader at `offset` that needs none beyond `limit`.
    func step(_ reader: ReaderID, at offset: Int, limit: Int) -> Step {
        let (step, writer) = state.withLock { state -> (Step, Continuation?) in
            guard let place = state.readers[reader], !place.isCutOff else {
                return (.failed(Self.tooSlow), nil)
            }
            let step = next(in: state, at: offset, limit: limit)
            if case .chunk(let chunk) = step { move(reader, to: offset + chunk.count, &state) }
            return (step, isRoomy(state) ? state.writer.take() : nil)
        }
        writer?.resume()
        return step
    }

    /// Records that a reader has read up to `offset` without the chain.
    func advance(_ reader: ReaderID, to offset: Int) {
        state.withLock { move(reader, to: offset, &$0) }
    }

    /// Suspends until there are bytes beyond `offset`, or the reader's task is cancelled.
    func waitForBytes(_ reader: ReaderID, beyond offset: Int) async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isReady = state.withLock { state in
                    guard let place = state.readers[reader], !place.isCutOff, state.isOpen,
                        state.endOffset <= offset, !Task.isCancelled
                    else { return true }
                    state.readers[reader]?.sleep = state.sleepers.enter(continuation)
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            state.withLock { wakeUp(reader, &$0) }?.resume()
        }
    }

    /// Removes a reader.
    func leave(_ reader: ReaderID) {
        let (sleeper, writer) = state.withLock { state -> (Continuation?, Continuation?) in
            let sleeper = wakeUp(reader, &state)
            let place = state.readers.removeValue(forKey: reader)
            // After the end the writer does not wait, and no more bytes arrive.
            guard state.isOpen else { return (sleeper, nil) }
            if let place, place.offset >= state.fastestOffset {
                state.fastestOffset =
                    state.readers.values.lazy.map(\.offset).max() ?? place.offset
            }
            trim(&state)
            return (sleeper, isRoomy(state) ? state.writer.take() : nil)
        }
        sleeper?.resume()
        writer?.resume()
    }

    // MARK: State under the lock

    private static let tooSlow = CacheError(
        .readerTooSlow,
        detail: "This reader is too far behind the others, and the body is not stored; "
            + "read faster, or raise originLimits.windowSize"
    )

    private func move(_ reader: ReaderID, to offset: Int, _ state: inout State) {
        guard state.readers[reader] != nil else { return }
        state.readers[reader]?.offset = offset
        state.fastestOffset = max(state.fastestOffset, offset)
    }

    private func wakeUp(
        _ reader: ReaderID,
        _ state: inout State
    ) -> Continuation? {
        guard let ticket = state.readers[reader]?.sleep.take() else { return nil }
        return state.sleepers.leave(ticket)
    }

    private func next(in state: State, at offset: Int, limit: Int) -> Step {
        if offset >= limit { return .end }
        if offset < state.firstOffset {
            if case .broken(let error) = state.ending { return .failed(error) }
            switch state.mode {
            case .spilled(let reader):
                return .readBack(reader, offset..<min(limit, state.firstOffset))
            case .passing(let remains?) where offset < remains.end:
                return .readBack(remains.reader, offset..<min(limit, remains.end))
            case .whole, .passing: return .failed(Self.tooSlow)
            }
        }
        if offset < state.endOffset { return .chunk(chunk(in: state, at: offset, limit: limit)) }
        switch state.ending {
        case .open: return .wait
        case .complete: return .end
        case .broken(let error): return .failed(error)
        }
    }

    private func chunk(in state: State, at offset: Int, limit: Int) -> ByteChunk {
        // The last chunk that begins at or before the offset.
        var low = 0
        var high = state.chunkOffsets.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if state.chunkOffsets[middle] <= offset { low = middle } else { high = middle }
        }
        let chunk = state.chunks[low]
        let start = offset - state.chunkOffsets[low]
        return chunk[start..<min(chunk.count, start + limit - offset)]
    }

    private func isRoomy(_ state: State) -> Bool {
        guard case .passing = state.mode, state.isOpen else { return true }
        if state.isDeserted || Mutant.waitsForNoReader.isOn { return true }
        return state.endOffset - state.fastestOffset < windowBytes
    }

    /// Drops the chunks behind the window, or those that no reader needs.
    private func trim(_ state: inout State) {
        defer { checkInvariants(state) }
        switch state.mode {
        case .whole: return
        case .spilled: drop(before: state.endOffset - windowBytes, &state)
        case .passing where state.lastReader == 0 && state.awaitedReaders > 0: return
        case .passing: drop(before: cutOff(&state), &state)
        }
    }

    /// Cuts off the readers that are too slow.
    ///
    /// - Returns: The offset of the slowest other reader, or one window behind the end if that is
    ///   less. A reader that was told of the body but has not started must find its beginning as
    ///   long as possible.
    private func cutOff(_ state: inout State) -> Int {
        let limit = min(state.fastestOffset, state.endOffset) - windowBytes
        var slowest = state.endOffset - windowBytes
        // A reader that reads back written bytes holds no memory.
        for (id, place) in state.readers
        where !place.isCutOff && place.offset >= state.remainsEnd {
            if place.offset < limit {
                state.readers[id]?.isCutOff = true
            } else {
                slowest = min(slowest, place.offset)
            }
        }
        return slowest
    }

    private func drop(before offset: Int, _ state: inout State) {
        var dropped = 0
        while dropped < state.chunks.count,
            state.chunkOffsets[dropped] + state.chunks[dropped].count <= offset
        { dropped += 1 }
        guard dropped > 0 else { return }
        state.firstOffset = state.chunkOffsets[dropped - 1] + state.chunks[dropped - 1].count
        state.chunks.removeFirst(dropped)
        state.chunkOffsets.removeFirst(dropped)
    }

    /// Changes the state, and resumes the readers and the writer outside the lock.
    private func change(_ body: (inout State) -> Void) {
        let (sleepers, writer) = state.withLock { state in
            body(&state)
            return (state.sleepers.removeAll(), isRoomy(state) ? state.writer.take() : nil)
        }
        for sleeper in sleepers { sleeper.element.resume() }
        writer?.resume()
    }

    private func checkInvariants(_ state: State) {
        #if ENGINE_CHECKS
            var offset = state.firstOffset
            for (chunk, start) in zip(state.chunks, state.chunkOffsets) {
                precondition(start == offset)
                offset += chunk.count
            }
            precondition(offset == state.endOffset)
            precondition(state.sleepers.count <= state.readers.count)
            if case .whole = state.mode { precondition(state.firstOffset == 0) }
        #endif
    }
}
