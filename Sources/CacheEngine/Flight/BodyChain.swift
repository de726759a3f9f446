import Synchronization

/// The body of a flight while it arrives: a `GrowingBody` with one writer and readers in tasks of
/// their own.
///
/// The budget counts what the body holds for its readers, from each change to the next.
final class BodyChain: Sendable {
    /// Reads bytes that were written to the store and that the chain may have dropped.
    typealias SpillReader = @Sendable (Range<Int>) async throws -> ByteChunk
    typealias ReaderID = Int
    private typealias Continuation = UnsafeContinuation<Void, Never>
    private typealias Body = GrowingBody<Continuation>

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

    /// The body, and the bytes that the budget counts for it.
    private struct Counted {
        var body: Body
        var owedBytes = 0
    }

    /// The announced length of the whole body.
    let expectedCount: Int?
    private let budget: BodyBudget
    private let body: Mutex<Counted>

    init(
        expectedCount: Int?,
        windowBytes: Int,
        budget: BodyBudget = BodyBudget(BodyLimits(totalBytes: .max))
    ) {
        self.expectedCount = expectedCount
        self.budget = budget
        body = Mutex(
            Counted(body: Body(windowBytes: windowBytes, leastWindowBytes: budget.leastBytes))
        )
    }

    deinit { budget.setOwed(0, before: body.withLock { $0.owedBytes }) }

    /// The number of readers.
    var readerCount: Int { body.withLock { $0.body.readerCount } }

    /// The number of bytes in memory.
    var heldBytes: Int { body.withLock { $0.body.heldBytes } }

    /// Whether the writer waits because the readers do not read on.
    var isHeldUpByReaders: Bool { body.withLock { $0.body.isHeldUpByReaders } }

    /// Whether the readers have held up the writer for too long, so that it must not store the body.
    var isOverdue: Bool { body.withLock { $0.body.isOverdue } }

    /// Whether the body is complete, and its readers have taken its beginning: it was kept until
    /// then.
    var isLetGo: Bool { body.withLock { $0.body.isLetGo } }

    // MARK: Writing

    /// Appends bytes and wakes the readers that wait for them; does nothing after the end.
    ///
    /// `joined`, if given, has them after those of the chunk before, and takes its place.
    func append(_ chunk: ByteChunk, joined: ByteChunk? = nil) {
        change { $0.append(chunk, joined: joined) }
    }

    /// From now on drops the chunks behind the window: `reader` reads them back.
    func spill(_ reader: @escaping SpillReader) { change { $0.spill(reader) } }

    /// From now on keeps nothing for later readers.
    func pass() { change { $0.pass() } }

    /// Awaits `count` more requests that were told of the body; each joins it or declines it.
    ///
    /// A writer that does not store the body waits for them. A new chain awaits one.
    func awaitReaders(more count: Int) { change { $0.awaitReaders(more: count) } }

    /// Declares that a request that was told of the body does not read it.
    func decline() { change { $0.decline() } }

    /// Marks the body as complete.
    func finish() { change { $0.finish() } }

    /// Ends the body with an error.
    ///
    /// A `CancellationError` is replaced: no reader may mistake another task's cancellation for its
    /// own.
    func fail(_ error: any Error) {
        if Mutant.endsBrokenBodiesCleanly.isOn { return finish() }
        change {
            error is CancellationError ? $0.abandon(Self.cancelled) : $0.fail(error)
        }
    }

    /// Ends a body that is not stored and that no reader needs; returns whether it was one.
    ///
    /// Its writer would find that out with the next piece of the origin, which may be silent.
    func failIfDeserted() -> Bool { withBody { $0.failIfDeserted(Self.cancelled) } }

    private static let cancelled = CacheError(
        .originFailed,
        detail: "The fetch of this body was cancelled"
    )

    /// Lets the writer wait no longer for the readers that have stood still for so long.
    func dismissStill(for limitNanoseconds: UInt64, nowNanoseconds: UInt64) {
        change { $0.dismissStill(for: limitNanoseconds, nowNanoseconds: nowNanoseconds) }
    }

    /// Whether the writer need not wait for its readers now.
    var hasRoom: Bool { withBody { $0.isRoomy() } }

    /// Suspends while a reader holds up the writer: one that reads a body that is not stored and is
    /// a whole window behind, or any reader of a stored body while memory is short.
    ///
    /// - Returns: `false` if no reader needs more and nothing is kept, or if the body has ended.
    func waitForRoom() async -> Bool {
        await withUnsafeContinuation { continuation in
            let isParked = withBody { !Task.isCancelled && $0.park(writer: continuation) }
            if !isParked { continuation.resume() }
        }
        return withBody { $0.needsBytes }
    }

    /// Ends the writer's wait after its task was cancelled.
    func stopWaiting() { withBody { $0.stopWaiting() }?.resume() }

    // MARK: Reading

    /// A stream of the bytes of `range`; `nil` if its beginning was dropped, or if `party` may still
    /// ask for itself and the body was abandoned, or passes far before it.
    func stream(_ range: Range<Int>? = nil, for party: Party = .follower) -> BodyStream? {
        if range == nil, let whole = takeWhole() { return whole }
        let lower = range?.lowerBound ?? 0
        guard let reader = withBody({ $0.join(at: lower, party) }) else { return nil }
        let source = BodyChainReader(self, id: reader, range: lower..<(range?.upperBound ?? .max))
        return BodyStream(source, count: range?.count ?? expectedCount)
    }

    /// The whole body without a reader in the chain; `nil` until it is complete and in memory, and
    /// if it is large.
    ///
    /// The stream is made under the lock: an array that leaves it would be copied at the next change.
    private func takeWhole() -> BodyStream? {
        withBody { body in
            guard let chunks = body.takeWhole() else { return nil }
            if chunks.count == 1 { return BodyStream(chunks[0]) }
            return BodyStream(parts: chunks.map { BodyStream($0) })
        }
    }

    /// The next bytes for a reader at `offset` that needs none beyond `limit`.
    func step(_ reader: ReaderID, at offset: Int, limit: Int) -> Step {
        let (step, writer) = withBody { $0.step(reader, at: offset, limit: limit) }
        writer?.resume()
        return step
    }

    /// Records that a reader that needs no bytes beyond `limit` has read up to `offset` without the
    /// chain.
    func advance(_ reader: ReaderID, to offset: Int, limit: Int) {
        withBody { $0.move(reader, to: offset, limit: limit) }?.resume()
    }

    /// Suspends until there are bytes beyond `offset`, or the reader's task is cancelled.
    func waitForBytes(_ reader: ReaderID, beyond offset: Int) async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isParked = withBody {
                    !Task.isCancelled && $0.park(reader, beyond: offset, continuation)
                }
                if !isParked { continuation.resume() }
            }
        } onCancel: {
            withBody { $0.wakeUp(reader) }?.resume()
        }
    }

    /// Removes a reader.
    func leave(_ reader: ReaderID) { change { $0.leave(reader) } }

    /// Changes the body, and wakes readers and writer outside the lock.
    private func change(_ change: (inout Body) -> Body.Woken) {
        let woken = withBody(change)
        for reader in woken.readers { reader.resume() }
        woken.writer?.resume()
    }

    /// Changes the body under the lock; tells it before whether memory is short, and the budget
    /// afterwards what it holds.
    private func withBody<Result: Sendable>(_ change: (inout Body) -> Result) -> Result {
        body.withLock { counted in
            counted.body.shortage = budget.shortage
            let result = change(&counted.body)
            let owedBytes = counted.body.owedBytes()
            budget.setOwed(owedBytes, before: counted.owedBytes)
            counted.owedBytes = owedBytes
            return result
        }
    }
}
