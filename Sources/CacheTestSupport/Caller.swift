public import CacheEngine
import Synchronization

/// One request to a cache, and everything that its caller has received so far.
public final class Caller: Sendable {
    /// How the caller reads the body.
    public enum Reading: Hashable, Sendable {
        /// Reads every piece as soon as it arrives.
        case steadily
        /// Reads one piece for each `readOn()`.
        case stepwise
        /// Reads nothing and drops the body after the head.
        case headOnly
    }

    /// The outcome of the request.
    public enum End: Sendable {
        /// The caller read the body to its end.
        case complete
        /// The request failed, or the body ended early with an error.
        case failed(any Error)
    }

    private struct State {
        var status: Int?
        var fields = HeaderFields()
        var info: CacheInfo?
        var bytes: [UInt8] = []
        var end: End?
        var task: Task<Void, Never>?
        var steps = 0
        var stepper: UnsafeContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    private let reading: Reading

    init(_ reading: Reading) { self.reading = reading }

    /// The status, or `nil` before the head has arrived.
    public var status: Int? { state.withLock { $0.status } }
    /// The fields, empty before the head has arrived.
    public var fields: HeaderFields { state.withLock { $0.fields } }
    /// The cache's account of the response, or `nil` before the head has arrived.
    public var info: CacheInfo? { state.withLock { $0.info } }
    /// The bytes of the body so far.
    public var bytes: [UInt8] { state.withLock { $0.bytes } }
    /// The body so far as text.
    public var text: String { String(decoding: bytes, as: UTF8.self) }
    /// The outcome, or `nil` while the request is under way.
    public var end: End? { state.withLock { $0.end } }
    /// Whether the caller read the body to a clean end.
    public var isComplete: Bool {
        if case .complete = end { return true }
        return false
    }
    /// The error of a failed request.
    public var error: (any Error)? {
        if case .failed(let error) = end { return error }
        return nil
    }
    /// The code of the error, if the cache threw it.
    public var errorCode: CacheError.Code? { (error as? CacheError)?.code }

    /// Cancels the request.
    public func cancel() {
        let (task, stepper) = state.withLock { ($0.task, $0.stepper.take()) }
        task?.cancel()
        stepper?.resume()
    }

    /// Lets a stepwise caller read one more piece of the body.
    public func readOn() {
        state.withLock { state in
            state.steps += 1
            return state.stepper.take()
        }?.resume()
    }

    func start(
        on executor: SeededExecutor,
        _ ask: @escaping @Sendable () async throws -> CacheResponse
    ) {
        let task = executor.start { [self] in
            let end: End
            do {
                try await read(ask())
                end = .complete
            } catch {
                end = .failed(error)
            }
            state.withLock { $0.end = end }
        }
        state.withLock { $0.task = task }
    }

    private func read(_ response: CacheResponse) async throws {
        state.withLock { state in
            state.status = response.status
            state.fields = response.fields
            state.info = response.info
        }
        guard reading != .headOnly else { return }
        var iterator = response.body.makeAsyncIterator()
        while true {
            if reading == .stepwise { await nextStep() }
            guard let piece = try await iterator.next() else { return }
            state.withLock { $0.bytes += piece.array }
        }
    }

    private func nextStep() async {
        await withUnsafeContinuation { continuation in
            let mayGoOn = state.withLock { state in
                if state.steps > 0 || state.task?.isCancelled == true {
                    state.steps -= 1
                    return true
                }
                state.stepper = continuation
                return false
            }
            if mayGoOn { continuation.resume() }
        }
    }
}
