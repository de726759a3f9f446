public import CacheEngine
import NIOBridge
import NIOCore
import NIOHTTP1
import Synchronization
public import Vapor

/// Answers requests through a cache in front of the routes behind it.
///
/// Place `ErrorMiddleware` behind this middleware too. It turns an error of a route into a
/// response; without it the error would count as an origin that cannot be reached.
public struct RouteCacheMiddleware: AsyncMiddleware {
    /// The cache, which purges, counts, and is run and shut down.
    ///
    /// It fetches only for requests that arrive: to `prefetch` it asks no route.
    public let cache: HTTPCache
    private let hiddenFields: [String]
    private let prepare: CacheMiddleware.Preparation

    /// Creates a middleware with a cache of its own, which shares its purges with `fleet`.
    ///
    /// If a fetch fails, the requests that wait for it get its error: `collapsing.maximumAttempts`
    /// is 1. Clients get the fields that name tags (`CachingRules.tagFields`) only if `showsTags`
    /// is `true`. The route of a GET or HEAD gets the fields that `prepare` sets.
    ///
    /// - Throws: What `HTTPCache.init` throws.
    public init(
        configuration: HTTPCache.Configuration,
        fleet: Fleet? = nil,
        showsTags: Bool = false,
        prepare: @escaping CacheMiddleware.Preparation = { _, _ in }
    ) async throws {
        var configuration = configuration
        // A further attempt for another request would see the task-local value of the first one, and
        // so its session and its login.
        configuration.collapsing.maximumAttempts = 1
        cache = try await HTTPCache(
            configuration: configuration,
            origin: RouteOrigin(),
            fleet: fleet
        )
        hiddenFields = showsTags ? [] : configuration.caching.tagFields
        self.prepare = prepare
    }

    /// Answers from the cache, which calls the routes if needed.
    public func respond(
        to request: Request,
        chainingTo next: any AsyncResponder
    ) async throws -> Response {
        let response = try await answer(to: request, chainingTo: next)
        for name in hiddenFields { response.headers.remove(name: name) }
        return response
    }

    private func answer(
        to request: Request,
        chainingTo next: any AsyncResponder
    ) async throws -> Response {
        guard !request.headers.contains(name: .upgrade), request.method != .CONNECT,
            request.headers.contains(name: .host), request.url.string.hasPrefix("/"),
            !request.isReadWithContent
        else { return try await next.respond(to: request) }
        // The host is part of the key, because routes may depend on it: they see it in that form.
        let hosts = request.headers[.host].map { ("Host", $0) }
        guard let host = HeaderFields(hosts).hostAuthority else { throw Abort(.badRequest) }
        request.headers.replaceOrAdd(name: .host, value: host)
        var question = CacheRequest(
            method: CacheEngine.HTTPMethod(request.method.rawValue),
            url: "http://\(host)\(request.url.string)",
            fields: HeaderFields(request.headers.map { ($0.name, $0.value) })
        )
        try await prepare(&question, request)
        let routes = Routes(request: request, next: next)
        do {
            let answer = try await RouteOrigin.$routes.withValue(routes) {
                try await cache.respond(to: question)
            }
            return routes.takeStreamed() ?? Response(answer, to: request)
        } catch let error as CacheError {
            throw request.abort(after: error)
        }
    }
}

/// The routes that the request which started a fetch is for, as the origin of the cache.
private struct RouteOrigin: Origin {
    /// A fetch sees the task-local values of the request that started it.
    @TaskLocal static var routes: Routes?

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        guard let routes = Self.routes else {
            let detail = "Routes are asked only for a request that arrives; send one"
            throw CacheError(.originFailed, detail: detail)
        }
        let response = try await routes.respond(to: request)
        var answer = OriginResponse(
            status: Int(response.status.code),
            fields: HeaderFields(response.headers.map { ($0.name, $0.value) })
        )
        if let buffer = response.body.buffer {
            answer.body = BodyStream(ByteChunk(buffer))
        } else if response.body.count != 0 {
            // Vapor passes a stream only to the client, so the stream bypasses the cache. Requests
            // that waited for it send requests of their own.
            routes.setStreamed(response)
            // Of all that forbids storing, only this is obeyed whatever the fields and the policy say.
            answer.fields["Vary"] = "*"
            answer.fields["Cache-Control"] = "no-store"
            answer.fields.remove("Content-Length")
        }
        return answer
    }
}

/// A request, the responder after it, and a response that cannot pass through the cache.
private final class Routes: Sendable {
    private let request: Request
    private let next: any AsyncResponder
    private let streamed = Mutex<Response?>(nil)

    init(request: Request, next: any AsyncResponder) {
        self.request = request
        self.next = next
    }

    func setStreamed(_ response: Response) { streamed.withLock { $0 = response } }

    func takeStreamed() -> Response? { streamed.withLock { $0.take() } }

    /// Calls the routes with the fields of the cache's request.
    func respond(to asked: OriginRequest) async throws -> Response {
        guard request.method == .GET || request.method == .HEAD else {
            return try await next.respond(to: request)
        }
        let question = Request(
            application: request.application,
            method: NIOHTTP1.HTTPMethod(rawValue: asked.method.name),
            url: request.url,
            version: request.version,
            headersNoUpdate: HTTPHeaders(asked.fields.pairs.map { ($0.name, $0.value) }),
            remoteAddress: request.remoteAddress,
            peerCertificateChain: request.peerCertificateChain,
            logger: request.logger,
            on: request.eventLoop
        )
        question.parameters = request.parameters
        question.route = request.route
        question.storage = request.storage
        question.serviceContext = request.serviceContext
        return try await next.respond(to: question)
    }
}

extension Request {
    /// Whether this is a GET or HEAD with content, whose response is for no other request.
    fileprivate var isReadWithContent: Bool {
        guard method == .GET || method == .HEAD else { return false }
        return headers.contains(name: .transferEncoding)
            || headers[.contentLength].contains { $0 != "0" }
    }
}
