import CacheEngine
import Platform
import Synchronization

/// The content of a request between the socket and its reader.
///
/// Holds at most a window. If it is full, the worker stops reading the socket until the reader has
/// made room.
final class RequestContent: BodySource {
    static let windowBytes = 64 * 1024
    private struct State {
        var chunks = FIFO<ByteChunk>()
        /// The cost of the waiting chunks.
        var bytes = 0
        var ending: Result<Void, CacheError>?
        var waiter: UnsafeContinuation<Void, Never>?
        var hasBegun = false
        var isAbandoned = false
        /// The worker waits for room.
        var isPaused = false
    }

    private let state = Mutex(State())
    /// Calls the worker.
    private let onWanted: @Sendable () -> Void

    init(onWanted: @escaping @Sendable () -> Void) { self.onWanted = onWanted }

    // MARK: The worker's side

    enum Admission: Hashable {
        case goOn
        case pause
        /// The reader wants no more.
        case discard
    }

    func push(_ chunk: ByteChunk) -> Admission {
        let (admission, waiter) = state.withLock { state in
            if state.isAbandoned { return (Admission.discard, state.waiter.take()) }
            state.chunks.append(chunk)
            state.bytes += chunk.count + ByteChunk.overheadBytes
            state.isPaused = state.bytes >= Self.windowBytes
            return (state.isPaused ? .pause : .goOn, state.waiter.take())
        }
        waiter?.resume()
        return admission
    }

    func finish() { end(.success(())) }

    func fail() {
        end(.failure(CacheError(.requestInvalid, detail: "The request's content broke off")))
    }

    private func end(_ ending: Result<Void, CacheError>) {
        let waiter = state.withLock { state in
            if state.ending == nil { state.ending = ending }
            return state.waiter.take()
        }
        waiter?.resume()
    }

    // MARK: The reader's side

    func next() async throws -> ByteChunk? {
        while true {
            try Task.checkCancellation()
            let (step, callsWorker) = state.withLock { take(&$0) }
            if callsWorker { onWanted() }
            switch step {
            case .chunk(let chunk): return chunk
            case .ended(let ending):
                try ending.get()
                return nil
            case .wait: await wait()
            }
        }
    }

    func cancel() {
        state.withLock { state in
            state.isAbandoned = true
            state.chunks.removeAll()
            state.bytes = 0
        }
        onWanted()
    }

    private enum Step {
        case chunk(ByteChunk)
        case ended(Result<Void, CacheError>)
        case wait
    }

    private func take(_ state: inout State) -> (Step, callsWorker: Bool) {
        let begins = !state.hasBegun
        state.hasBegun = true
        guard let chunk = state.chunks.popFirst() else {
            if let ending = state.ending { return (.ended(ending), false) }
            return (.wait, begins)
        }
        state.bytes -= chunk.count + ByteChunk.overheadBytes
        let hasRoom = state.isPaused && state.bytes <= Self.windowBytes / 2
        if hasRoom { state.isPaused = false }
        return (.chunk(chunk), begins || hasRoom)
    }

    private func wait() async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isReady = state.withLock { state in
                    if !state.chunks.isEmpty || state.ending != nil || Task.isCancelled {
                        return true
                    }
                    state.waiter = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiter.take() }?.resume()
        }
    }
}
