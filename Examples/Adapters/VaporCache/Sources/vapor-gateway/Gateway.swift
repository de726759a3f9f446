import AsyncHTTPClientOrigin
import CacheEngine
import Vapor
import VaporCache

/// A server that answers everything from another server, through a cache.
///
///     swift run vapor-gateway serve
@main
struct Gateway {
    static func main() async throws {
        let application = try await Application.make(.detect())
        let origin = AsyncHTTPClientOrigin()
        let cache = try await HTTPCache(
            configuration: Configuration(memory: .megabytes(256)),
            origin: origin
        )
        let upstream = Environment.get("UPSTREAM") ?? "http://127.0.0.1:3000"
        application.middleware.use(CacheMiddleware(cache: cache, upstream: upstream))

        let sweeping = Task { await cache.run() }
        do {
            try await application.execute()
        } catch {
            application.logger.report(error: error)
        }
        sweeping.cancel()
        await sweeping.value
        try await origin.shutDown()
        try await application.asyncShutdown()
    }
}
