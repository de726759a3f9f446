internal import Synchronization

/// The first answer to a question that a delegate may answer late, twice or never.
///
///     waiting ──answer──▶ answered      waiting ──cancellation──▶ answered
final class FirstAnswer<Value: Sendable>: Sendable {
    private enum State: Sendable {
        case open
        case waiting(CheckedContinuation<Value, any Error>)
        case answered(Result<Value, any Error>)
        case over
    }

    private let state = Mutex(State.open)

    /// Asks, and returns the first answer; later ones are ignored.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before an answer.
    static func wait(
        _ ask: (_ answer: @escaping @Sendable (Value) -> Void) -> Void
    ) async throws -> Value {
        let first = FirstAnswer()
        ask { first.finish(.success($0)) }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { first.begin($0) }
        } onCancel: {
            first.finish(.failure(CancellationError()))
        }
    }

    private func begin(_ continuation: CheckedContinuation<Value, any Error>) {
        let early = state.withLock { state -> Result<Value, any Error>? in
            if case .answered(let result) = state {
                state = .over
                return result
            }
            state = .waiting(continuation)
            return nil
        }
        if let early { continuation.resume(with: early) }
    }

    private func finish(_ result: Result<Value, any Error>) {
        let waiting = state.withLock { state -> CheckedContinuation<Value, any Error>? in
            switch state {
            case .open: state = .answered(result)
            case .waiting(let continuation):
                state = .over
                return continuation
            case .answered, .over: break
            }
            return nil
        }
        waiting?.resume(with: result)
    }
}
