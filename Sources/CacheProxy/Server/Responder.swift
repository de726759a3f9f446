package import CacheEngine

/// Whoever answers the requests that a server takes: the cache, the admin desk, or a test's script.
package protocol Responder: Sendable {
    /// An answer that is there already, given on the event loop without waiting.
    func cachedResponse(for request: CacheRequest) -> CacheResponse?
    /// The answer.
    func respond(to request: CacheRequest) async throws -> CacheResponse
}

extension Responder {
    /// Nothing is there already.
    package func cachedResponse(for request: CacheRequest) -> CacheResponse? { nil }
}
