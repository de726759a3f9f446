import Synchronization

/// Waits until a number of operations are over.
final class Settlement: Sendable {
    private let race = Race<Void>()
    private let left: Mutex<Int>
    private let tellsErrors: Bool

    /// Waits for the end of `count` operations; with `tellsErrors`, or for the first that fails.
    init(of count: Int, tellsErrors: Bool = false) {
        left = Mutex(count)
        self.tellsErrors = tellsErrors
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
