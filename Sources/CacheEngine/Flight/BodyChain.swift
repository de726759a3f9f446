import Synchronization

/// The body of a flight while it arrives: an append-only run of chunks that any number of readers
/// follow at their own pace.
///
///     whole ──spill──▶ spilled        readers may start at byte 0
///       └────pass────▶ passing        nobody joins; chunks are dropped once read
///
/// While *whole*, every chunk is kept, for readers and for the entry that will be stored. Once
/// *spilled*, chunks behind the window are read back from where they were written. While *passing*
/// (stored nowhere) the writer waits for the fastest reader, and a reader who falls a window behind
/// it is cut off: memory is bounded by the window in every mode, and no slow reader slows the rest.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. `chunks` cover `firstOffset..<endOffset` without a gap.
/// 2. While whole, `firstOffset` is 0.
/// 3. No reader stands beyond `endOffset`.
final class BodyChain: Sendable {
    /// Reads back what was written out, at any offset below what the chain has dropped.
    typealias SpillReader = @Sendable (Range<Int>) async throws -> ByteChunk

    private enum Mode {
        case whole
        case spilled(SpillReader)
        case passing
    }

    private enum Ending {
        case open
        case complete
        case broken(any Error)
    }

    private struct Reader {
        var offset: Int
        var continuation: UnsafeContinuation<Void, Never>?
        var isCutOff = false
    }

    private struct State {
        var mode = Mode.whole
        var ending = Ending.open
        var chunks: [ByteChunk] = []
        var chunkOffsets: [Int] = []
        var firstOffset = 0
        var endOffset = 0
        var readers: [Int: Reader] = [:]
        var nextReader = 0
        /// How far the fastest reader has come.
        var fastestOffset = 0
        var writer: UnsafeContinuation<Void, Never>?
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

    // MARK: Writing

    /// How many readers follow.
    var readerCount: Int { state.withLock { $0.readers.count } }

    /// Adds bytes behind the others and wakes who waits for them.
    func append(_ chunk: ByteChunk) {
        guard !chunk.isEmpty else { return }
        wake { state in
            state.chunks.append(chunk)
            state.chunkOffsets.append(state.endOffset)
            state.endOffset += chunk.count
            trim(&state)
        }
    }

    /// From here on what readers have passed is dropped: it can be read back.
    func spill(_ reader: @escaping SpillReader) {
        wake { state in
            state.mode = .spilled(reader)
            trim(&state)
        }
    }

    /// From here on nothing is kept for those who come later.
    func pass() {
        wake { state in
            state.mode = .passing
            trim(&state)
        }
    }

    /// The body is complete.
    func finish() { wake { $0.ending = .complete } }

    /// The body broke off.
    func fail(_ error: any Error) { wake { $0.ending = .broken(error) } }

    /// Suspends while the fastest reader is a whole window behind.
    ///
    /// - Returns: False when those who read have left and nothing is kept.
    func waitForRoom() async -> Bool {
        await withUnsafeContinuation { continuation in
            let mayGoOn = state.withLock { state in
                if isRoomy(state) { return true }
                state.writer = continuation
                return false
            }
            if mayGoOn { continuation.resume() }
        }
        return state.withLock { state in
            guard case .passing = state.mode else { return true }
            return !state.readers.isEmpty || state.nextReader == 0
        }
    }

    /// Ends a wait of the writer, whose task was cancelled.
    func stopWaiting() { state.withLock { $0.writer.take() }?.resume() }

    // MARK: Reading

    /// A stream of the bytes from `range`, or nil when the beginning is gone.
    func stream(_ range: Range<Int>? = nil) -> BodyStream? {
        let lower = range?.lowerBound ?? 0
        let reader = state.withLock { state -> Int? in
            if case .passing = state.mode, lower < state.firstOffset { return nil }
            state.nextReader += 1
            state.readers[state.nextReader] = Reader(offset: min(lower, state.endOffset))
            return state.nextReader
        }
        guard let reader else { return nil }
        let source = BodyChainReader(self, id: reader, range: lower..<(range?.upperBound ?? .max))
        return BodyStream(source, count: range?.count ?? expectedCount)
    }

    enum Step {
        case chunk(ByteChunk)
        case readBack(SpillReader, Range<Int>)
        case end
        case failed(any Error)
        case wait
    }

    /// The next bytes for a reader that stands at `offset` and wants none beyond `limit`.
    func step(_ reader: Int, at offset: Int, limit: Int) -> Step {
        let (step, writer) = state.withLock { state -> (Step, UnsafeContinuation<Void, Never>?) in
            guard var place = state.readers[reader] else { return (.end, nil) }
            if place.isCutOff { return (.failed(Self.tooSlow), nil) }
            let step = next(in: state, at: offset, limit: limit)
            if case .chunk(let chunk) = step {
                place.offset = offset + chunk.count
                state.readers[reader] = place
                state.fastestOffset = max(state.fastestOffset, place.offset)
            }
            return (step, isRoomy(state) ? state.writer.take() : nil)
        }
        writer?.resume()
        return step
    }

    /// A reader has read up to `offset` by itself.
    func advance(_ reader: Int, to offset: Int) {
        state.withLock { state in
            state.readers[reader]?.offset = offset
            state.fastestOffset = max(state.fastestOffset, offset)
        }
    }

    /// Suspends until there is something beyond `offset`, or the reader's task is cancelled.
    func waitForBytes(_ reader: Int, beyond offset: Int) async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isReady = state.withLock { state in
                    guard state.readers[reader] != nil else { return true }
                    if case .open = state.ending, state.endOffset <= offset, !Task.isCancelled {
                        state.readers[reader]?.continuation = continuation
                        return false
                    }
                    return true
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.readers[reader]?.continuation.take() }?.resume()
        }
    }

    /// The reader is gone.
    func leave(_ reader: Int) {
        let (waiting, writer) = state.withLock { state in
            let place = state.readers.removeValue(forKey: reader)
            if place?.offset == state.fastestOffset {
                state.fastestOffset = state.readers.values.map(\.offset).max() ?? state.endOffset
            }
            return (place?.continuation, isRoomy(state) ? state.writer.take() : nil)
        }
        waiting?.resume()
        writer?.resume()
    }

    // MARK: Under the lock

    private static let tooSlow = CacheError(
        .readerTooSlow,
        detail: "The body is stored nowhere, and this reader fell behind the others"
    )

    private func next(in state: State, at offset: Int, limit: Int) -> Step {
        if offset >= limit { return .end }
        if offset < state.firstOffset {
            guard case .spilled(let reader) = state.mode else { return .failed(Self.tooSlow) }
            return .readBack(reader, offset..<min(limit, state.firstOffset))
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
        guard case .passing = state.mode else { return true }
        if state.readers.isEmpty, state.nextReader > 0 { return true }
        return state.endOffset - state.fastestOffset < windowBytes
    }

    /// Drops what lies behind the window, or what nobody needs.
    private func trim(_ state: inout State) {
        defer { checkInvariants(state) }
        let keepFrom: Int
        switch state.mode {
        case .whole: return
        case .spilled:
            keepFrom = state.endOffset - windowBytes
        case .passing where state.nextReader == 0: return
        case .passing:
            let limit = state.fastestOffset - windowBytes
            for (id, place) in state.readers where place.offset < limit && !place.isCutOff {
                state.readers[id]?.isCutOff = true
            }
            let slowest = state.readers.values.filter { !$0.isCutOff }.map(\.offset).min()
            keepFrom = slowest ?? state.endOffset
        }
        var dropped = 0
        while dropped < state.chunks.count,
            state.chunkOffsets[dropped] + state.chunks[dropped].count <= keepFrom
        { dropped += 1 }
        guard dropped > 0 else { return }
        state.firstOffset = state.chunkOffsets[dropped - 1] + state.chunks[dropped - 1].count
        state.chunks.removeFirst(dropped)
        state.chunkOffsets.removeFirst(dropped)
    }

    private func wake(_ change: (inout State) -> Void) {
        let (waiting, writer) = state.withLock { state in
            change(&state)
            var waiting: [UnsafeContinuation<Void, Never>] = []
            for id in state.readers.keys {
                if let continuation = state.readers[id]?.continuation.take() {
                    waiting.append(continuation)
                }
            }
            return (waiting, isRoomy(state) ? state.writer.take() : nil)
        }
        for continuation in waiting { continuation.resume() }
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
            precondition(state.readers.values.allSatisfy { $0.offset <= state.endOffset })
            if case .whole = state.mode { precondition(state.firstOffset == 0) }
        #endif
    }
}
