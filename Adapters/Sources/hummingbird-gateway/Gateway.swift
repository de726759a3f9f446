import AsyncHTTPClientOrigin
import CacheEngine
import CacheService
import HTTPTypes
import Hummingbird
import HummingbirdCache
import Logging
import NIOCore
import ServiceLifecycle

/// A server that caches `/news` from its own route and all other paths from another server.
///
///     swift run hummingbird-gateway http://127.0.0.1:3000
@main
struct Gateway {
    static func main() async throws {
        let upstream = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1:3000"
        let origin = AsyncHTTPClientOrigin()
        let remote = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(256)),
            origin: origin
        )
        let own = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(64)),
            origin: ResponderOrigin(newsRoutes().buildResponder()) { RouteContext(source: .init()) }
        )

        let router = Router(options: .autoGenerateHeadEndpoints)
        router.group("news")
            .add(middleware: CacheMiddleware(cache: own, upstream: "http://news.internal"))
            .get { _, _ in Response(status: .notFound) }
        router.add(middleware: CacheMiddleware(cache: remote, upstream: upstream))
        var application = Application(router: router)
        application.addServices(CacheService(remote), CacheService(own))
        try await application.runService()
        try await origin.shutDown()
    }

    /// A route whose response is fresh for a minute.
    private static func newsRoutes() -> Router<RouteContext> {
        let router = Router(context: RouteContext.self, options: .autoGenerateHeadEndpoints)
        router.get("news") { _, _ in
            Response(
                status: .ok,
                headers: [.cacheControl: "max-age=60", .contentType: "text/plain"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: "nothing new"))
            )
        }
        return router
    }
}

/// The context of routes that a cache calls; it belongs to no connection.
struct RouteContext: RequestContext {
    struct Source: RequestContextSource {
        let logger = Logger(label: "routes")
    }

    var coreContext: CoreRequestContextStorage

    init(source: Source) { coreContext = CoreRequestContextStorage(source: source) }
}
