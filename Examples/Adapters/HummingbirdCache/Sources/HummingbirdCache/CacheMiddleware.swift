public import CacheEngine
import HTTPTypes
public import Hummingbird
import NIOBridge
import NIOCore

/// Answers requests through a cache in front of an origin.
///
/// What the client asks for is asked of `upstream` under the same path. What cannot be cached because
/// it belongs to the connection, an upgrade or a tunnel, goes to the routes behind.
public struct CacheMiddleware<Context: RequestContext>: RouterMiddleware {
    private let cache: HTTPCache
    private let upstream: String
    private let name: String
    private let contentBytesMax: Int

    /// A middleware in front of `upstream`, a scheme and an authority such as
    /// `http://127.0.0.1:3000`.
    ///
    /// `Via` calls it `name`. Requests whose content is longer than `contentBytesMax` are answered
    /// 413.
    public init(
        cache: HTTPCache,
        upstream: String,
        name: String = "hummingbird",
        contentBytesMax: Int = 64 << 20
    ) {
        self.cache = cache
        self.upstream = upstream
        self.name = name
        self.contentBytesMax = contentBytesMax
    }

    /// Answers from the cache, or through it.
    public func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard request.headers[.upgrade] == nil, request.method != .connect else {
            return try await next(request, context)
        }
        // An absolute target would name another host than the one that is meant.
        guard let path = request.head.path, path.hasPrefix("/") else {
            throw HTTPError(.badRequest)
        }
        let content = try content(of: request)
        let question = CacheRequest(
            method: Method(request.method.rawValue),
            url: upstream + path,
            fields: HeaderFields(request.headers).forwarded(by: name),
            body: content.map { BodyStream($0, count: request.contentLength) }
        )
        do {
            return Response(try await cache.respond(to: question), to: request.method)
        } catch let error as CacheError {
            if content?.isTooLarge == true { throw HTTPError(.contentTooLarge) }
            throw HTTPError(.init(code: error.gatewayStatus), message: error.detail)
        }
    }

    /// The content of the request, read when the origin wants it; nil where there is none.
    private func content(of request: Request) throws -> BufferBody<RequestBody>? {
        guard request.mayHaveContent else { return nil }
        guard request.contentLength ?? 0 <= contentBytesMax else {
            throw HTTPError(.contentTooLarge)
        }
        return BufferBody(request.body, bytesMax: contentBytesMax)
    }
}

extension Request {
    fileprivate var contentLength: Int? { headers[.contentLength].flatMap { Int($0) } }

    /// HTTP/2 needs neither a length nor a coding in front of content.
    fileprivate var mayHaveContent: Bool {
        if let contentLength { return contentLength > 0 }
        return headers[.transferEncoding] != nil || [.post, .put, .patch].contains(method)
    }
}

extension Response {
    /// The cache's answer, `Age` and `Cache-Status` with it.
    ///
    /// A client that leaves makes the writer throw; the stream is let go with that, and whatever
    /// fetches only for this client is cancelled.
    fileprivate init(_ answer: CacheResponse, to method: HTTPRequest.Method) {
        let body = answer.body
        self.init(
            status: .init(code: answer.status),
            headers: HTTPFields(answer.fields),
            // An answer to HEAD has the length of what GET would bring, and no content.
            body: ResponseBody(contentLength: method == .head ? nil : body.count) { writer in
                for try await chunk in body { try await writer.write(ByteBuffer(chunk)) }
                try await writer.finish(nil)
            }
        )
    }
}
