public import CacheEngine
internal import HTTPCaching
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
/// URLSession reports no 1xx responses, joins field lines with the same name, and drops the body of
/// a redirect without `Location`. A part of coded content is an error, because its decoded bytes are
/// no part: a request with `Range` asks for content without a coding unless it names one.
public final class URLSessionOrigin: Origin {
    private let session: URLSession
    private let delegate: SessionDelegate
    private let cancellations = DispatchQueue(
        label: "URLSessionOrigin.cancellations",
        attributes: .concurrent
    )
    private let windowBytesMax: Int
    /// The limit without a byte in either direction that `configuration` gives.
    private let idleSeconds: Double

    /// Creates an origin whose session uses `configuration`.
    ///
    /// The cache, cookies and credentials of `configuration` are not used, and it is not changed.
    ///
    /// Its `timeoutIntervalForRequest` limits the pauses of an exchange; a longer limit on the head of
    /// the response extends it.
    ///
    /// `maximumWindow` bounds the body bytes that wait for a slow reader. URLSession on Linux
    /// cannot be slowed down, so an exchange over the bound ends with
    /// `CacheError.Code.readerTooSlow`.
    public init(
        configuration: URLSessionConfiguration = .ephemeral,
        maximumWindow: ByteCount = .megabytes(64)
    ) {
        delegate = SessionDelegate()
        session = URLSession(
            configuration: Self.own(configuration),
            delegate: delegate,
            delegateQueue: nil
        )
        windowBytesMax = maximumWindow.bytes
        idleSeconds = configuration.timeoutIntervalForRequest
    }

    /// A copy for the private session, which must not load through a cache.
    private static func own(_ configuration: URLSessionConfiguration) -> URLSessionConfiguration {
        guard let own = configuration.copy() as? URLSessionConfiguration else {
            preconditionFailure("The copy of a session's configuration has another type")
        }
        own.urlCache = nil
        own.httpCookieStorage = nil
        own.httpShouldSetCookies = false
        own.urlCredentialStorage = nil
        own.timeoutIntervalForRequest = min(
            own.timeoutIntervalForRequest,
            SessionExchange.limitSecondsMax
        )
        #if canImport(FoundationNetworking)
            own.protocolClasses = own.protocolClasses?.filter { !($0 is CachingURLProtocol.Type) }
        #endif
        return own
    }

    deinit { session.finishTasksAndInvalidate() }

    /// Sends the request, and returns when the head of the response has arrived.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        try Task.checkCancellation()
        let exchange = SessionExchange(
            content: request.body,
            windowBytesMax: windowBytesMax,
            cancellations: cancellations
        )
        let content = try await OriginContent(request.body)
        defer { content.release() }
        let task = content.task(with: try urlRequest(request), in: session)
        delegate.register(exchange, for: task)
        exchange.start(task)
        let head = try await exchange.head(within: request.timeout)
        guard head.hasContent, request.method != .head else {
            return OriginResponse(status: head.status, fields: head.fields)
        }
        return OriginResponse(
            status: head.status,
            fields: head.fields,
            body: BodyStream(exchange, count: head.contentBytes)
        )
    }

    private func urlRequest(_ request: OriginRequest) throws -> URLRequest {
        guard let url = URL(string: request.url), url.host != nil else {
            throw CacheError(
                .requestInvalid,
                detail: "The URL is invalid in Foundation or has no host: "
                    + "`\(PlainText.excerpt(url: request.url))`"
            )
        }
        var asked = URLRequest(url: url)
        asked.httpMethod = request.method.name
        asked.cachePolicy = .reloadIgnoringLocalCacheData
        // URLSession counts whole seconds, and from the last byte in either direction: the limit on
        // the head is kept by the exchange.
        let seconds = max(idleSeconds, request.timeout?.seconds ?? 0).rounded(.up)
        asked.timeoutInterval = min(max(seconds, 1), SessionExchange.limitSecondsMax)
        for (name, value) in request.fields.pairs {
            asked.addValue(value, forHTTPHeaderField: name)
        }
        if request.fields.contains("Range"), !request.fields.contains("Accept-Encoding") {
            asked.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        }
        if request.fields.section.authenticatesConnection {
            // URLSession would give the connection to the request of another user, and has no call that
            // closes it: the origin must close it (RFC 9112 §9.6).
            asked.setValue("close", forHTTPHeaderField: "Connection")
        }
        return asked
    }
}
