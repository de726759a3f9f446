public import CacheEngine
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// An origin reached through a URLSession of its own.
///
/// The session has no cache and no cookies, and follows no redirect. URLSession decodes contents:
/// answers come without `Content-Encoding`, and without the length that no longer is theirs.
/// It reports no 1xx heads, and joins field lines of one name.
public final class URLSessionOrigin: Origin {
    private let session: URLSession
    private let delegate: SessionDelegate
    private let cancellations = DispatchQueue(
        label: "URLSessionOrigin.cancellations",
        attributes: .concurrent
    )
    private let windowBytesMax: Int

    /// An origin whose session is set up by `configuration`, cache, cookies and credentials left
    /// out.
    ///
    /// `windowBytesMax` bounds the body bytes that wait for a slow reader: on Linux a URLSession
    /// cannot be held back, and the exchange ends with `CacheError.Code.readerTooSlow`.
    public init(
        configuration: URLSessionConfiguration = .ephemeral,
        windowBytesMax: ByteCount = .megabytes(64)
    ) {
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCredentialStorage = nil
        delegate = SessionDelegate()
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        self.windowBytesMax = windowBytesMax.bytes
    }

    deinit { session.finishTasksAndInvalidate() }

    /// Sends the request, and returns when the head of its answer is there.
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
            throw CacheError(.requestInvalid, detail: "No URL to Foundation")
        }
        var asked = URLRequest(url: url)
        asked.httpMethod = request.method.name
        asked.cachePolicy = .reloadIgnoringLocalCacheData
        if let seconds = request.timeoutSeconds { asked.timeoutInterval = seconds }
        for (name, value) in request.fields.pairs {
            asked.addValue(value, forHTTPHeaderField: name)
        }
        if let body = request.body {
            asked.httpBody = Data(try await body.collect())
        }
        return asked
    }
}
