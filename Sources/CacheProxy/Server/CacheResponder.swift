import CacheEngine

/// The cache as the responder of a server.
struct CacheResponder: Responder {
    let cache: HTTPCache

    /// The largest body that is copied behind its head.
    ///
    /// Copying it costs less than holding its entry, which all threads that hit one key would write
    /// to.
    private static let copiedBodyBytesMax = 4 << 10

    func immediateAnswer(
        to request: CacheRequest,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer {
        cache.answerWithoutWaiting(request, bodyBytesMax: Self.copiedBodyBytesMax, read)
    }

    nonisolated(nonsending) func respond(to request: CacheRequest) async throws -> CacheResponse {
        try await cache.respondWaiting(to: request)
    }
}
