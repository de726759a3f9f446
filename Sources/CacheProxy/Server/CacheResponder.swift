import CacheEngine

/// The cache as whoever answers a server's requests.
struct CacheResponder: Responder {
    let cache: HTTPCache

    func cachedResponse(for request: CacheRequest) -> CacheResponse? {
        cache.cachedResponse(for: request)
    }

    func respond(to request: CacheRequest) async throws -> CacheResponse {
        try await cache.respond(to: request)
    }
}
