import Synchronization

/// The body of a flight while it arrives: an append-only run of chunks that any number of readers
/// follow at their own pace.
///
///     whole ──spill──▶ spilled        readers may start at byte 0
///       │                 │pass
///       └──────pass───────┴─▶ passing  nobody joins once chunks are gone
///
/// While *whole*, every chunk is kept, for readers and for the entry that will be stored. Once
/// *spilled*, chunks behind the window are read back from where they were written. While *passing*
/// (stored nowhere) the writer waits for the fastest reader, and a reader who falls a window behind
/// it is cut off: memory is bounded by the window in every mode, and no slow reader slows the rest.
/// Who was behind when a spilled body could not be kept any longer still reads back what was.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. `chunks` cover `firstOffset..<endOffset` without a gap.
/// 2. While whole, `firstOffset` is 0.
/// 3. Who sleeps is a reader, and each reader sleeps once.
final class BodyChain: Sendable {
    /// Reads back what was written out, at any offset below what the chain has dropped.
    typealias SpillReader = @Sendable (Range<Int>) async throws -> ByteChunk
    typealias ReaderID = Int
    private typealias Continuation = UnsafeContinuation<Void, Never>

    private enum Mode {
        case whole
        case spilled(SpillReader)
        case passing(Remains?)
    }

    /// What was written out before the rest could not be.
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
        /// The first byte it has still to read; a reader of a part may stand beyond the end.
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
        /// Whether somebody may come who was told of the body.
        var awaitsFirstReader = true
        /// How far the fastest of the readers has come.
        var fastestOffset = 0
        var sleepers = WaitingLine<Continuation>()
        var writer: Continuation?

        var isOpen: Bool {
            if case .open = ending { return true }
            return false
        }

        /// Whether nobody reads, and nobody who was told will.
        var isDeserted: Bool { readers.isEmpty && (lastReader > 0 || !awaitsFirstReader) }

        /// Where that ends which can still be read back, though no more is written out.
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

    /// How many readers follow.
    var readerCount: Int { state.withLock { $0.readers.count } }

    /// The bytes that are held in memory.
    var heldBytes: Int { state.withLock { $0.endOffset - $0.firstOffset } }

    /// Whether the body stands still because those who read it do not read on.
    var isHeldUpByReaders: Bool { state.withLock { $0.writer != nil && !$0.readers.isEmpty } }

    // MARK: Writing

    /// Adds bytes behind the others and wakes who waits for them; nothing once the body has ended.
    func append(_ chunk: ByteChunk) {
        guard !chunk.isEmpty else { return }
        change { state in
            guard state.isOpen else { return }
            state.chunks.append(chunk)
            state.chunkOffsets.append(state.endOffset)
            state.endOffset += chunk.count
            trim(&state)
        }
    }

    /// From here on what readers have passed is dropped: it can be read back.
    func spill(_ reader: @escaping SpillReader) {
        change { state in
            state.mode = .spilled(reader)
            trim(&state)
        }
    }

    /// From here on nothing is kept for those who come later.
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

    /// Nobody was told of the body: a writer who stores it nowhere need not wait for readers.
    func awaitNobody() { change { $0.awaitsFirstReader = false } }

    /// The body is complete.
    func finish() { end(.complete) }

    /// The body broke off.
    ///
    /// No reader is to take another task's cancellation for its own.
    func fail(_ error: any Error) {
        let gone = CacheError(.originFailed, detail: "The fetch of this body was given up")
        end(.broken(error is CancellationError ? gone : error))
    }

    /// The first end counts.
    private func end(_ ending: Ending) {
        change { state in
            if state.isOpen { state.ending = ending }
        }
    }

    /// Suspends while the fastest reader is a whole window behind.
    ///
    /// - Returns: False when those who read have left and nothing is kept, or the body has ended.
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

    /// Ends a wait of the writer, whose task was cancelled.
    func stopWaiting() { state.withLock { $0.writer.take() }?.resume() }

    // MARK: Reading

    /// A stream of the bytes from `range`; nil when its beginning is gone, or the body broke off.
    func stream(_ range: Range<Int>? = nil, for party: Party = .follower) -> BodyStream? {
        if range == nil, let complete { return complete }
        let lower = range?.lowerBound ?? 0
        let reader = state.withLock { state -> ReaderID? in
            // Whoever asked is told how it ended; others may still ask for themselves.
            if case .broken = state.ending, party == .follower { return nil }
            if case .passing = state.mode, lower < state.firstOffset { return nil }
            state.lastReader += 1
            state.readers[state.lastReader] = Reader(offset: lower)
            // Who wants a later part alone must not wait for a writer who waits for a reader.
            state.fastestOffset = max(state.fastestOffset, lower)
            return state.lastReader
        }
        guard let reader else { return nil }
        let source = BodyChainReader(self, id: reader, range: lower..<(range?.upperBound ?? .max))
        return BodyStream(source, count: range?.count ?? expectedCount)
    }

    /// The whole body, once it is all there: nobody has to follow it any more.
    private var complete: BodyStream? {
        state.withLock { state in
            guard case .complete = state.ending, state.firstOffset == 0 else { return nil }
            if state.chunks.count == 1 { return BodyStream(state.chunks[0]) }
            return BodyStream(parts: state.chunks.map { BodyStream($0) })
        }
    }

    /// On whose behalf a body is read.
    enum Party {
        /// The request that was sent.
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

    /// The next bytes for a reader that stands at `offset` and wants none beyond `limit`.
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

    /// A reader has read up to `offset` by itself.
    func advance(_ reader: ReaderID, to offset: Int) {
        state.withLock { move(reader, to: offset, &$0) }
    }

    /// Suspends until there is something beyond `offset`, or the reader's task is cancelled.
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

    /// The reader is gone.
    func leave(_ reader: ReaderID) {
        let (sleeper, writer) = state.withLock { state -> (Continuation?, Continuation?) in
            let sleeper = wakeUp(reader, &state)
            let place = state.readers.removeValue(forKey: reader)
            // Once the body has ended nobody waits for room, and no more of it comes.
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

    // MARK: Under the lock

    private static let tooSlow = CacheError(
        .readerTooSlow,
        detail: "The body is stored nowhere, and this reader fell behind the others"
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
        if state.isDeserted { return true }
        return state.endOffset - state.fastestOffset < windowBytes
    }

    /// Drops what lies behind the window, or what nobody needs.
    private func trim(_ state: inout State) {
        defer { checkInvariants(state) }
        switch state.mode {
        case .whole: return
        case .spilled: drop(before: state.endOffset - windowBytes, &state)
        case .passing where state.lastReader == 0 && state.awaitsFirstReader: return
        case .passing: drop(before: cutOff(&state), &state)
        }
    }

    /// Gives up the readers who are too slow.
    ///
    /// - Returns: Where the slowest of the others stands, or a window behind the end: who has been
    ///   told of the body and has not begun to read must find its beginning as long as may be.
    private func cutOff(_ state: inout State) -> Int {
        let limit = min(state.fastestOffset, state.endOffset) - windowBytes
        var slowest = state.endOffset - windowBytes
        // Who reads back what was written out holds no memory.
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

    /// Changes the state, and resumes outside the lock whom that concerns.
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
