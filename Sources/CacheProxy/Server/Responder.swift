package import CacheEngine

/// Answers the requests of a server: the cache, the administration, or a test's script.
package protocol Responder: Sendable {
    /// Answers without waiting, on the event loop: calls `read` with a small response where it is
    /// stored, or returns the response, or neither.
    ///
    /// `read` copies and never waits, and calls nothing of the responder.
    func immediateAnswer(
        to request: CacheRequest,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer
    /// The response, however long it takes.
    nonisolated(nonsending) func respond(to request: CacheRequest) async throws -> CacheResponse
}

extension Responder {
    /// No response is available without waiting.
    package func immediateAnswer(
        to request: CacheRequest,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer { .none }
}
