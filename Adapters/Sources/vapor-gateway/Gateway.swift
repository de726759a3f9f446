import AsyncHTTPClientOrigin
import CacheEngine
import NIOHTTP1
import Vapor
import VaporCache

/// A server that caches `/news` from its own route and all other paths from another server.
///
///     UPSTREAM=http://127.0.0.1:3000 swift run vapor-gateway serve
@main
struct Gateway {
    static func main() async throws {
        let application = try await Application.make(.detect())
        let origin = AsyncHTTPClientOrigin()
        do {
            try await serve(application, through: origin)
        } catch {
            application.logger.report(error: error)
        }
        // Its client must be shut down, also if the upstream is invalid.
        try await origin.shutDown()
        try await application.asyncShutdown()
    }

    private static func serve(
        _ application: Application,
        through origin: any Origin
    ) async throws {
        let remote = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(256)),
            origin: origin
        )
        let routes = try await RouteCacheMiddleware(
            configuration: HTTPCache.Configuration(memory: .megabytes(64))
        )
        let upstream = Environment.get("UPSTREAM") ?? "http://127.0.0.1:3000"

        let errors = ErrorMiddleware.default(environment: application.environment)
        application.grouped(routes, errors).get("news") { _ in
            Response(
                status: .ok,
                headers: ["Cache-Control": "max-age=60"],
                body: .init(string: "nothing new")
            )
        }
        // These routes only make Vapor accept the requests; the middleware answers them.
        let gateway = application.grouped(
            try CacheMiddleware(cache: remote, upstream: upstream) { asked, request in
                // It replaces what the client claims.
                asked.fields["X-Forwarded-For"] = request.remoteAddress?.ipAddress
            }
        )
        for method: NIOHTTP1.HTTPMethod in [.GET, .POST, .PUT, .PATCH, .DELETE, .OPTIONS] {
            gateway.on(method) { _ in Response(status: .notFound) }
            gateway.on(method, "**") { _ in Response(status: .notFound) }
        }

        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await remote.run() }
            group.addTask { await routes.cache.run() }
            try await application.execute()
            group.cancelAll()
        }
    }
}
