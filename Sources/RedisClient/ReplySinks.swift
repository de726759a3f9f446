internal import RESP
internal import Synchronization

/// A task that waits for replies.
///
/// A cancelled task leaves at once; the replies still come, and are dropped.
final class Waiter: ReplySink {
    typealias Outcome = Result<[RESPValue], RedisError>

    private enum State: Sendable {
        case idle
        case waiting(UnsafeContinuation<Outcome, Never>)
        case ended
    }

    private let state = Mutex(State.idle)

    /// Waits for the outcome; `start` is called unless the task is cancelled already.
    static func outcome(_ start: (Waiter) -> Void) async -> Outcome {
        let waiter = Waiter()
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                if waiter.begin(continuation) {
                    start(waiter)
                } else {
                    continuation.resume(returning: .failure(cancellation))
                }
            }
        } onCancel: {
            waiter.finish(.failure(cancellation))
        }
    }

    private static var cancellation: RedisError {
        RedisError(.cancelled, detail: "The caller was cancelled")
    }

    private func begin(_ continuation: UnsafeContinuation<Outcome, Never>) -> Bool {
        state.withLock { state in
            guard case .idle = state else { return false }
            state = .waiting(continuation)
            return true
        }
    }

    func finish(_ outcome: Outcome) {
        let continuation = state.withLock { state -> UnsafeContinuation<Outcome, Never>? in
            defer { state = .ended }
            guard case .waiting(let continuation) = state else { return nil }
            return continuation
        }
        continuation?.resume(returning: outcome)
    }
}

/// A step of the client itself that follows a reply; it runs on the thread of the loop.
final class FollowUp: ReplySink {
    private let run: @Sendable (Result<[RESPValue], RedisError>) -> Void

    init(_ run: @escaping @Sendable (Result<[RESPValue], RedisError>) -> Void) { self.run = run }

    func finish(_ outcome: Result<[RESPValue], RedisError>) { run(outcome) }
}
