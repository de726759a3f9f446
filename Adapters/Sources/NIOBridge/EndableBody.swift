public import CacheEngine
public import NIOCore
import Synchronization

/// A body whose reading can be ended from outside, also while a read is under way.
///
/// Each read has a task of its own, which `end` cancels.
public final class EndableBody<Buffers>: BodySource
where Buffers: AsyncSequence & Sendable, Buffers.Element == ByteBuffer {
    private struct State {
        var reading: Task<ByteChunk?, any Error>?
        /// The error of all reads after the end.
        var end: (any Error)?
    }

    private let body: BufferBody<Buffers>
    private let state = Mutex(State())

    /// Creates a body of `buffers` that throws if it is longer than `bytesMax`.
    public init(_ buffers: Buffers, bytesMax: Int = .max) {
        body = BufferBody(buffers, bytesMax: bytesMax)
    }

    /// Whether the body was longer than the limit.
    public var isTooLarge: Bool { body.isTooLarge }

    /// Returns the next piece.
    public func next() async throws -> ByteChunk? {
        let reading = try state.withLock { state in
            if let end = state.end { throw end }
            let reading = Task { [body] in
                try Task.checkCancellation()
                return try await body.next()
            }
            state.reading = reading
            return reading
        }
        let outcome = await withTaskCancellationHandler {
            await reading.result
        } onCancel: {
            reading.cancel()
        }
        // Some sequences end quietly when their reader is cancelled.
        if let end = state.withLock({ $0.end }) { throw end }
        return try outcome.get()
    }

    /// Ends the read that is under way; it and all later ones throw `error`.
    ///
    /// When it returns, no read touches the sequence any more.
    public func end(with error: any Error) {
        state.withLock { state in
            guard state.end == nil else { return }
            state.end = error
            state.reading?.cancel()
        }
    }

    /// Releases the sequence, which tells its sender that reading has ended.
    public func cancel() { body.cancel() }
}
