public import CacheEngine
import HTTPTypes
public import Hummingbird
import Logging
import NIOBridge
import NIOCore

/// Answers requests through a cache in front of an origin.
///
/// A request is sent to `upstream` with the client's path. Upgrades and tunnels belong to the
/// connection and cannot be cached, so they go to the routes behind this middleware.
public struct CacheMiddleware<Context: RequestContext>: RouterMiddleware {
    /// Changes a request to the cache before the cache sees it.
    ///
    /// It may set options, such as the partition of a user or a policy, and fields for the origin.
    /// It must not read the content of the server's request. Its error is the server's.
    public typealias Preparation =
        @Sendable (inout CacheRequest, Request, Context) async throws -> Void

    private let cache: HTTPCache
    private let upstream: Upstream
    private let name: String
    private let contentBytesMax: Int
    private let hiddenFields: [String]
    private let prepare: Preparation

    /// Creates a middleware in front of `upstream`.
    ///
    /// `upstream` is a scheme and an authority such as `http://127.0.0.1:3000`. `name` appears in
    /// `Via`. A request whose content is longer than `contentBytesMax` is answered with 413, and
    /// one over HTTP/2 whose content has no length with 411. Clients get the fields that name tags
    /// (`CachingRules.tagFields`) only if `showsTags` is `true`.
    ///
    /// - Throws: `CacheError.Code.configurationInvalid` if `upstream` is anything else.
    public init(
        cache: HTTPCache,
        upstream: String,
        name: String = "hummingbird",
        contentBytesMax: Int = 64 << 20,
        showsTags: Bool = false,
        prepare: @escaping Preparation = { _, _, _ in }
    ) throws(CacheError) {
        self.cache = cache
        self.upstream = try Upstream(upstream)
        self.name = name
        self.contentBytesMax = contentBytesMax
        hiddenFields = showsTags ? [] : cache.configuration.caching.tagFields
        self.prepare = prepare
    }

    /// Answers from the cache, which asks the origin if needed.
    public func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard request.headers[.upgrade] == nil, request.method != .connect else {
            return try await next(request, context)
        }
        // An absolute target would name a host other than `upstream`.
        guard let path = request.head.path, path.hasPrefix("/") else {
            throw HTTPError(.badRequest)
        }
        let content = try await content(of: request)
        let lease = content.map(ContentLease.init)
        var question = CacheRequest(
            method: HTTPMethod(request.method.rawValue),
            url: "\(upstream)\(path)",
            fields: HeaderFields(request.headers).forwarded(by: name),
            body: content.map { BodyStream($0, count: request.contentLength) }
        )
        try await prepare(&question, request, context)
        do {
            var answer = try await cache.respond(to: question)
            answer.fields = answer.fields.without(hiddenFields)
            return Response(answer, to: request.method, lending: lease)
        } catch let error as CacheError {
            if content?.isTooLarge == true { throw HTTPError(.contentTooLarge) }
            let status = error.gatewayStatus
            context.logger.log(
                level: status < 500 ? .debug : .warning,
                "The cache has no response",
                metadata: ["error": "\(error)"]
            )
            // The detail may name the hosts and ports behind this server.
            throw HTTPError(.init(code: status), message: error.code.description)
        }
    }

    /// The content of the request, read on demand of the origin, or `nil` if there is none.
    private func content(of request: Request) async throws -> EndableBody<RequestBody>? {
        guard request.isFramed else {
            // Content that breaks off with its connection would pass for the whole.
            guard try await !request.hasUnframedContent else { throw HTTPError(.lengthRequired) }
            return nil
        }
        let length = request.contentLength
        guard length ?? 1 > 0 else { return nil }
        guard length ?? 0 <= contentBytesMax else {
            throw HTTPError(.contentTooLarge)
        }
        return EndableBody(request.body, bytesMax: contentBytesMax)
    }
}

/// Lends a request's content to the origin until the response has been written or dropped.
///
/// Then Hummingbird reads what is left of the content. An origin that had a read under way, because
/// it answered without the content or timed out, would read the connection beside it, at which
/// SwiftNIO ends the process. If the content has not ended, the connection is closed.
private final class ContentLease: Sendable {
    private let content: EndableBody<RequestBody>

    init(_ content: EndableBody<RequestBody>) { self.content = content }

    deinit { end() }

    func end() { content.end(with: CancellationError()) }
}

extension Request {
    fileprivate var contentLength: Int? { headers[.contentLength].flatMap { Int($0) } }

    /// Whether a field tells where the content ends; only HTTP/2 has content without such a field.
    fileprivate var isFramed: Bool {
        contentLength != nil || headers[.transferEncoding] != nil
    }

    /// Whether content without such a field arrives, of which the first piece is read.
    ///
    /// The content of a GET or HEAD is ignored.
    fileprivate var hasUnframedContent: Bool {
        get async throws {
            guard method != .get, method != .head else { return false }
            for try await piece in body where piece.readableBytes > 0 { return true }
            return false
        }
    }
}

extension Response {
    /// Creates a response from the cache's response, including `Age` and `Cache-Status`.
    ///
    /// If the client disconnects, the writer throws. This drops the stream and cancels any fetch
    /// that serves only this client.
    fileprivate init(
        _ answer: CacheResponse,
        to method: HTTPRequest.Method,
        lending lease: ContentLease?
    ) {
        let body = answer.body
        self.init(
            status: .init(code: answer.status),
            headers: HTTPFields(answer.fields),
            // A response to HEAD has no content and no length here; GET's length is in its fields.
            body: ResponseBody(contentLength: method == .head ? nil : body.count) { writer in
                defer { lease?.end() }
                for try await chunk in body { try await writer.write(ByteBuffer(chunk)) }
                try await writer.finish(nil)
            }
        )
    }
}
