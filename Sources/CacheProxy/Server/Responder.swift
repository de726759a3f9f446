package import CacheEngine

/// Answers the requests of a server: the cache, the administration, or a test's script.
package protocol Responder: Sendable {
    /// A response that is available without waiting; called on the event loop.
    func immediateResponse(to request: CacheRequest) -> CacheResponse?
    /// The response, however long it takes.
    func respond(to request: CacheRequest) async throws -> CacheResponse
}

extension Responder {
    /// No response is available without waiting.
    package func immediateResponse(to request: CacheRequest) -> CacheResponse? { nil }
}
