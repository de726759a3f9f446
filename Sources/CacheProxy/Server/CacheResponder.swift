import CacheEngine

/// The cache as the responder of a server.
struct CacheResponder: Responder {
    let cache: HTTPCache

    func immediateResponse(to request: CacheRequest) -> CacheResponse? {
        cache.immediateResponse(to: request)
    }

    func respond(to request: CacheRequest) async throws -> CacheResponse {
        try await cache.respond(to: request)
    }
}
