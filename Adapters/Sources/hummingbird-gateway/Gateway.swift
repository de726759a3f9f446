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
        do {
            try await serve(upstream, through: origin)
        } catch {
            Logger(label: "gateway").error("\(error)")
        }
        // Its client must be shut down, also if the upstream is invalid.
        try await origin.shutDown()
    }

    private static func serve(_ upstream: String, through origin: any Origin) async throws {
        let remote = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(256)),
            origin: origin
        )
        let own = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(64)),
            origin: ResponderOrigin(newsRoutes().buildResponder()) { RouteContext(source: .init()) }
        )

        let router = Router(context: ClientContext.self, options: .autoGenerateHeadEndpoints)
        router.group("news")
            .add(middleware: try CacheMiddleware(cache: own, upstream: "http://news.internal"))
            .get { _, _ in Response(status: .notFound) }
        router.add(
            middleware: try CacheMiddleware(cache: remote, upstream: upstream) { asked, _, client in
                // It replaces what the client claims.
                asked.fields["X-Forwarded-For"] = client.address?.ipAddress
            }
        )
        var application = Application(router: router)
        application.addServices(CacheService(remote), CacheService(own))
        try await application.runService()
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

/// The context of a client's request.
struct ClientContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The address of the client, or of a proxy in front of this server.
    let address: SocketAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        address = source.channel.remoteAddress
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
