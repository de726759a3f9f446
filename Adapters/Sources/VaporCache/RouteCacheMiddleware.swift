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
    private let cache: HTTPCache

    /// Creates a middleware with a cache of its own.
    ///
    /// If a fetch fails, the requests that wait for it get its error: `collapsing.maximumAttempts` is 1.
    public init(configuration: HTTPCache.Configuration) async throws {
        var configuration = configuration
        // A further attempt for another request would see the task-local value of the first one, and
        // so its session and its login.
        configuration.collapsing.maximumAttempts = 1
        cache = try await HTTPCache(configuration: configuration, origin: RouteOrigin())
    }

    /// Does the periodic work of the cache until the task is cancelled, then shuts it down.
    public func run() async { await cache.run() }

    /// Removes every entry whose response carried the tag in `Cache-Tag`.
    public func purge(tag: String) async throws { try await cache.purge(tag: tag) }

    /// Answers from the cache, which calls the routes if needed.
    public func respond(
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
        let question = CacheRequest(
            method: CacheEngine.HTTPMethod(request.method.rawValue),
            url: "http://\(host)\(request.url.string)",
            fields: HeaderFields(request.headers.map { ($0.name, $0.value) })
        )
        let routes = Routes(request: request, next: next)
        do {
            let answer = try await RouteOrigin.$routes.withValue(routes) {
                try await cache.respond(to: question)
            }
            return routes.takeStreamed() ?? Response(answer, to: request)
        } catch let error as CacheError {
            throw Abort(.init(statusCode: error.gatewayStatus), reason: error.detail)
        }
    }
}

/// The routes that the request which started a fetch is for, as the origin of the cache.
private struct RouteOrigin: Origin {
    /// A fetch sees the task-local values of the request that started it.
    @TaskLocal static var routes: Routes?

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        guard let routes = Self.routes else {
            throw CacheError(.originFailed, detail: "There is no request behind the fetch")
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
