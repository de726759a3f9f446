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

/// A task that may be cancelled before it is attached.
package final class TaskHandle: Sendable {
    private let state = Mutex<(task: Task<Void, Never>?, isCancelled: Bool)>((nil, false))

    package init() {}

    package func attach(_ task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    package func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}

/// Waits until a number of operations are over.
final class Settlement: Sendable {
    private let race = Race<Void>()
    private let left: Mutex<Int>
    private let tellsErrors: Bool

    /// Waits for the end of `count` operations, failed or not.
    init(of count: Int) {
        left = Mutex(count)
        tellsErrors = false
        if count == 0 { race.finish(.success(())) }
    }

    /// Waits for the end of `count` operations, or the first that fails.
    init(tellingErrors count: Int) {
        left = Mutex(count)
        tellsErrors = true
        if count == 0 { race.finish(.success(())) }
    }

    /// Notes that one operation is over.
    func settle(_ error: (any Error)?) {
        if tellsErrors, let error { return race.finish(.failure(error)) }
        let isLast = left.withLock { left in
            left -= 1
            assert(left >= 0, "no more operations end than were counted")
            return left == 0
        }
        if isLast { race.finish(.success(())) }
    }

    /// - Throws: The error of a failed operation; `CancellationError` at once if the task is
    ///   cancelled.
    func wait() async throws { try await race.result() }
}
