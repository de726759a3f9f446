public import CacheEngine
import Synchronization

/// A body that a test feeds in pieces.
public final class ManualBody: BodySource {
    private enum Event: Sendable {
        case chunk(ByteChunk)
        case end
        case failure(any Error)
    }

    private struct State {
        var events: [Event] = []
        var reader: UnsafeContinuation<Event, Never>?
        var isCancelled = false
    }

    private let state = Mutex(State())

    /// Creates an empty body.
    public init() {}

    /// Returns the stream that reads the body.
    public func stream(count: Int? = nil) -> BodyStream { BodyStream(self, count: count) }

    /// Whether the reader has cancelled the body, or its task was cancelled while it waited.
    public var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// The number of pieces that have not been read.
    public var unreadCount: Int { state.withLock { $0.events.count } }

    /// Adds a piece.
    public func feed(_ text: String) { add(.chunk(ByteChunk(text))) }
    /// Adds a piece.
    public func feed(_ chunk: ByteChunk) { add(.chunk(chunk)) }
    /// Ends the body.
    public func finish() { add(.end) }
    /// Ends the body with an error.
    public func fail(_ error: any Error) { add(.failure(error)) }

    /// Returns the next piece.
    public func next() async throws -> ByteChunk? {
        let event = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let event = state.withLock { state -> Event? in
                    if !state.events.isEmpty { return state.events.removeFirst() }
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.reader = continuation
                    return nil
                }
                if let event { continuation.resume(returning: event) }
            }
        } onCancel: {
            let reader = state.withLock { state in
                state.isCancelled = true
                return state.reader.take()
            }
            reader?.resume(returning: .failure(CancellationError()))
        }
        switch event {
        case .chunk(let chunk): return chunk
        case .end: return nil
        case .failure(let error): throw error
        }
    }

    /// Records that the reader has cancelled the body.
    public func cancel() { state.withLock { $0.isCancelled = true } }

    private func add(_ event: Event) {
        let reader = state.withLock { state -> UnsafeContinuation<Event, Never>? in
            guard let reader = state.reader.take() else {
                state.events.append(event)
                return nil
            }
            return reader
        }
        reader?.resume(returning: event)
    }
}
