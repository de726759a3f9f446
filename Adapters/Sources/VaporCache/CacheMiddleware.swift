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
    /// Changes a request to the cache before the cache sees it.
    ///
    /// It may set options, such as the partition of a user or a policy, and fields for the origin.
    /// It must not read the content of Vapor's request. Its error is Vapor's.
    public typealias Preparation = @Sendable (inout CacheRequest, Request) async throws -> Void

    private let cache: HTTPCache
    private let upstream: Upstream
    private let name: String
    private let contentBytesMax: Int
    private let isContentDecoded: Bool
    private let hiddenFields: [String]
    private let prepare: Preparation

    /// Creates a middleware in front of `upstream`.
    ///
    /// `upstream` is a scheme and an authority such as `http://127.0.0.1:3000`. `name` appears in
    /// `Via`. A request whose content is longer than `contentBytesMax` is answered with 413, and
    /// one over HTTP/2 whose content has no length with 411. Clients get the fields that name tags
    /// (`CachingRules.tagFields`) only if `showsTags` is `true`.
    ///
    /// Vapor decodes content with the coding gzip or deflate, so the origin gets it without that
    /// coding. Give `false` as `isContentDecoded` if the server's `requestDecompression` is
    /// `.disabled`; the content then passes as it came. Over HTTP/2 decoded content is answered
    /// with 415, because only the length of the coded content is known.
    ///
    /// - Throws: `CacheError.Code.configurationInvalid` if `upstream` is anything else.
    public init(
        cache: HTTPCache,
        upstream: String,
        name: String = "vapor",
        contentBytesMax: Int = 64 << 20,
        isContentDecoded: Bool = true,
        showsTags: Bool = false,
        prepare: @escaping Preparation = { _, _ in }
    ) throws(CacheError) {
        self.cache = cache
        self.upstream = try Upstream(upstream)
        self.name = name
        self.contentBytesMax = contentBytesMax
        self.isContentDecoded = isContentDecoded
        hiddenFields = showsTags ? [] : cache.configuration.caching.tagFields
        self.prepare = prepare
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
        let hasLostCoding = isContentDecoded && request.hasDecodedCoding
        let pieces = RequestContent(request.body, isDecoded: hasLostCoding)
        let content = try content(of: request, in: pieces)
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
        var question = CacheRequest(
            method: CacheEngine.HTTPMethod(request.method.rawValue),
            url: "\(upstream)\(target)",
            fields: fields,
            body: content.map { BodyStream($0, count: count) }
        )
        try await prepare(&question, request)
        do {
            var answer = try await cache.respond(to: question)
            answer.fields = answer.fields.without(hiddenFields)
            return Response(answer, to: request)
        } catch let error as CacheError {
            if content?.isTooLarge == true { throw Abort(.payloadTooLarge) }
            if pieces.isBroken { throw Abort(.badRequest) }
            throw request.abort(after: error)
        }
    }

    /// The content of the request, read on demand of the origin, or `nil` if there is none.
    private func content(
        of request: Request,
        in pieces: RequestContent
    ) throws -> BufferBody<RequestContent>? {
        let length = request.contentLength
        guard length ?? 0 <= contentBytesMax else { throw Abort(.payloadTooLarge) }
        guard (length ?? 0) > 0 || request.headers.contains(name: .transferEncoding) else {
            return nil
        }
        return BufferBody(pieces, bytesMax: contentBytesMax)
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
