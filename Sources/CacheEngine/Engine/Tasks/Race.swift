import Synchronization

/// The first of several results; later results are ignored.
package final class Race<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(UnsafeContinuation<Value, any Error>)
        case decided(Result<Value, any Error>)
        case over
    }

    private let state = Mutex(State.open)

    package init() {}

    /// Asks, and returns the first answer: code of others may answer late, twice or never.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before an answer.
    package static func answer(
        _ ask: (_ answer: @escaping @Sendable (Value) -> Void) -> Void
    ) async throws -> Value {
        let race = Race()
        ask { race.finish(.success($0)) }
        return try await race.result()
    }

    package func finish(_ result: Result<Value, any Error>) {
        let waiting = state.withLock { state -> UnsafeContinuation<Value, any Error>? in
            switch state {
            case .open:
                state = .decided(result)
                return nil
            case .awaited(let continuation):
                state = .over
                return continuation
            case .decided, .over: return nil
            }
        }
        waiting?.resume(with: result)
    }

    /// Waits for the first result; must be called once.
    package func result() async throws -> Value {
        try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { hand(to: $0) }
        } onCancel: {
            finish(.failure(CancellationError()))
        }
    }

    /// Waits for the first result, even if the task is cancelled; must be called once.
    package func resultDespiteCancellation() async throws -> Value {
        try await withUnsafeThrowingContinuation { hand(to: $0) }
    }

    /// Resumes `continuation` with the first result, now or later.
    private func hand(to continuation: UnsafeContinuation<Value, any Error>) {
        let decided = state.withLock { state -> Result<Value, any Error>? in
            if case .decided(let result) = state {
                state = .over
                return result
            }
            state = .awaited(continuation)
            return nil
        }
        if let decided { continuation.resume(with: decided) }
    }

    /// Whether there is no result yet.
    package var isOpen: Bool {
        state.withLock { state in
            switch state {
            case .open, .awaited: true
            case .decided, .over: false
            }
        }
    }
}
