public import CacheEngine
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// An origin reached through a private URLSession.
///
/// The session has no cache and no cookies, and follows no redirects. URLSession decodes contents,
/// so responses have no `Content-Encoding`, and no `Content-Length` of the encoded content.
/// URLSession reports no 1xx responses, and joins field lines with the same name.
public final class URLSessionOrigin: Origin {
    private let session: URLSession
    private let delegate: SessionDelegate
    private let cancellations = DispatchQueue(
        label: "URLSessionOrigin.cancellations",
        attributes: .concurrent
    )
    private let windowBytesMax: Int

    /// Creates an origin whose session uses `configuration`.
    ///
    /// The cache, cookies and credentials of `configuration` are not used.
    ///
    /// `maximumWindow` bounds the body bytes that wait for a slow reader. URLSession on Linux
    /// cannot be slowed down, so an exchange over the bound ends with
    /// `CacheError.Code.readerTooSlow`.
    public init(
        configuration: URLSessionConfiguration = .ephemeral,
        maximumWindow: ByteCount = .megabytes(64)
    ) {
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCredentialStorage = nil
        delegate = SessionDelegate()
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        windowBytesMax = maximumWindow.bytes
    }

    deinit { session.finishTasksAndInvalidate() }

    /// Sends the request, and returns when the head of the response has arrived.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        try Task.checkCancellation()
        let exchange = SessionExchange(
            windowBytesMax: windowBytesMax,
            cancellations: cancellations
        )
        let task = session.dataTask(with: try await Self.urlRequest(request))
        delegate.register(exchange, for: task)
        exchange.start(task)
        let head = try await exchange.head()
        guard head.hasContent, request.method != .head else {
            return OriginResponse(status: head.status, fields: head.fields)
        }
        return OriginResponse(
            status: head.status,
            fields: head.fields,
            body: BodyStream(exchange, count: head.contentBytes)
        )
    }

    private static func urlRequest(_ request: OriginRequest) async throws -> URLRequest {
        guard let url = URL(string: request.url), url.host != nil else {
            throw CacheError(
                .requestInvalid,
                detail: "The URL is invalid in Foundation or has no host: "
                    + "`\(PlainText.excerpt(request.url))`"
            )
        }
        var asked = URLRequest(url: url)
        asked.httpMethod = request.method.name
        asked.cachePolicy = .reloadIgnoringLocalCacheData
        if let timeout = request.timeout { asked.timeoutInterval = timeout.seconds }
        for (name, value) in request.fields.pairs {
            asked.addValue(value, forHTTPHeaderField: name)
        }
        if let body = request.body {
            asked.httpBody = Data(try await body.collect())
        }
        return asked
    }
}
