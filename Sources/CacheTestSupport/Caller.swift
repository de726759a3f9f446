public import CacheEngine
import Synchronization

/// One request on its way through a cache, and everything it was told so far.
public final class Caller: Sendable {
    /// How the body is read.
    public enum Reading: Hashable, Sendable {
        /// As fast as it comes.
        case steadily
        /// A piece at each `readOn()`.
        case stepwise
        /// Not at all: the body is dropped with the head.
        case headOnly
    }

    /// What became of the request.
    public enum End: Sendable {
        /// The body was read to its end.
        case complete
        /// No answer, or a body that broke off.
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
        var stepper: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    private let reading: Reading

    init(_ reading: Reading) { self.reading = reading }

    /// The status, once the head is there.
    public var status: Int? { state.withLock { $0.status } }
    /// The fields, once the head is there.
    public var fields: HeaderFields { state.withLock { $0.fields } }
    /// What the cache did, once the head is there.
    public var info: CacheInfo? { state.withLock { $0.info } }
    /// The body so far.
    public var bytes: [UInt8] { state.withLock { $0.bytes } }
    /// The body so far, as text.
    public var text: String { String(decoding: bytes, as: UTF8.self) }
    /// How it ended, if it did.
    public var end: End? { state.withLock { $0.end } }
    /// Whether the body was read to a clean end.
    public var isComplete: Bool {
        if case .complete = end { return true }
        return false
    }
    /// The error it ended with.
    public var error: (any Error)? {
        if case .failed(let error) = end { return error }
        return nil
    }
    /// The code of the error, where it is one of the cache's.
    public var errorCode: CacheError.Code? { (error as? CacheError)?.code }

    /// The caller loses interest.
    public func cancel() {
        let (task, stepper) = state.withLock { ($0.task, $0.stepper.take()) }
        task?.cancel()
        stepper?.resume()
    }

    /// Reads one more piece of the body.
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
        await withCheckedContinuation { continuation in
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
