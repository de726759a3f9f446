import CacheEngine

/// Answers the requests of a server: the cache, the administration, or a test's script.
protocol Responder: Sendable {
    /// Answers without waiting, on the event loop: calls `read` with a small response where it is
    /// stored, or returns the response, or neither.
    ///
    /// `read` copies and never waits, and calls nothing of the responder.
    func immediateAnswer(
        to request: CacheRequest,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer
    /// Begins to answer, on the event loop; `answer` keeps the work, so that it can be cancelled.
    ///
    /// `completion` is called once, by any thread, perhaps before this method returns.
    func begin(
        _ request: consuming CacheRequest,
        _ answer: PendingAnswer,
        _ completion: @escaping PendingAnswer.Completion
    )
}

extension Responder {
    /// No response is available without waiting.
    func immediateAnswer(
        to request: CacheRequest,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer { .none }
}

/// A responder that answers each request in a task of its own.
protocol TaskResponder: Responder {
    /// The response, however long it takes.
    nonisolated(nonsending) func respond(to request: CacheRequest) async throws -> CacheResponse
}

extension TaskResponder {
    func begin(
        _ request: CacheRequest,
        _ answer: PendingAnswer,
        _ completion: @escaping PendingAnswer.Completion
    ) {
        answer.startTask(on: request.options.taskExecutor, completion) {
            try await respond(to: request)
        }
    }
}
