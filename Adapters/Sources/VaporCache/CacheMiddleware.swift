public import CacheEngine
import NIOBridge
import NIOCore
import NIOHTTP1
public import Vapor

/// Answers requests through a cache in front of an origin.
///
/// A request is sent to `upstream` with the client's path. Upgrades and tunnels belong to the
/// connection and cannot be cached, so they go to the routes behind this middleware.
public struct CacheMiddleware: AsyncMiddleware {
    private let cache: HTTPCache
    private let upstream: String
    private let name: String
    private let contentBytesMax: Int
    private let isContentDecoded: Bool

    /// Creates a middleware in front of `upstream`.
    ///
    /// `upstream` is a scheme and an authority such as `http://127.0.0.1:3000`. `name` appears in
    /// `Via`. A request whose content is longer than `contentBytesMax` is answered with 413, and one
    /// over HTTP/2 whose content has no length with 411.
    ///
    /// Vapor decodes content with the coding gzip or deflate, so the origin gets it without that
    /// coding. Give `false` as `isContentDecoded` if the server's `requestDecompression` is
    /// `.disabled`; the content then passes as it came. Over HTTP/2 decoded content is answered with
    /// 415, because only the length of the coded content is known.
    public init(
        cache: HTTPCache,
        upstream: String,
        name: String = "vapor",
        contentBytesMax: Int = 64 << 20,
        isContentDecoded: Bool = true
    ) {
        self.cache = cache
        self.upstream = upstream
        self.name = name
        self.contentBytesMax = contentBytesMax
        self.isContentDecoded = isContentDecoded
    }

    /// Answers from the cache, which asks the origin if needed.
    public func respond(
        to request: Request,
        chainingTo next: any AsyncResponder
    ) async throws -> Response {
        guard !request.headers.contains(name: .upgrade), request.method != .CONNECT else {
            return try await next.respond(to: request)
        }
        // An absolute target would name a host other than `upstream`.
        let target = request.url.string
        guard target.hasPrefix("/") else { throw Abort(.badRequest) }
        let content = try content(of: request)
        let hasLostCoding = isContentDecoded && request.hasDecodedCoding
        var fields = HeaderFields(request.headers.map { ($0.name, $0.value) }).forwarded(by: name)
        if hasLostCoding {
            fields.remove("Content-Encoding")
            fields.remove("Content-Length")
        }
        let count = hasLostCoding ? nil : request.contentLength
        if content != nil, count == nil, request.version.major >= 2 {
            // Content that breaks off with its connection would pass for the whole.
            throw Abort(request.contentLength == nil ? .lengthRequired : .unsupportedMediaType)
        }
        let question = CacheRequest(
            method: CacheEngine.HTTPMethod(request.method.rawValue),
            url: upstream + target,
            fields: fields,
            body: content.map { BodyStream($0, count: count) }
        )
        do {
            return Response(try await cache.respond(to: question), to: request)
        } catch let error as CacheError {
            if content?.isTooLarge == true { throw Abort(.payloadTooLarge) }
            throw Abort(.init(statusCode: error.gatewayStatus), reason: error.detail)
        }
    }

    /// The content of the request, read on demand of the origin, or `nil` if there is none.
    private func content(of request: Request) throws -> BufferBody<Request.Body>? {
        let length = request.contentLength
        guard length ?? 0 <= contentBytesMax else { throw Abort(.payloadTooLarge) }
        guard (length ?? 0) > 0 || request.headers.contains(name: .transferEncoding) else {
            return nil
        }
        return BufferBody(request.body, bytesMax: contentBytesMax)
    }
}

extension Request {
    fileprivate var contentLength: Int? {
        headers.first(name: .contentLength).flatMap { Int($0) }
    }

    /// Whether the content had a coding that SwiftNIO's decompressor removes; it leaves the fields.
    fileprivate var hasDecodedCoding: Bool {
        let coding = headers[canonicalForm: "Content-Encoding"].first?.lowercased()
        return coding == "gzip" || coding == "deflate"
    }
}
