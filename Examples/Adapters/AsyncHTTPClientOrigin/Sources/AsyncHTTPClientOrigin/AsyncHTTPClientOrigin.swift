public import AsyncHTTPClient
public import CacheEngine
import NIOBridge
import NIOCore
import NIOHTTP1

/// An origin reached over the network by AsyncHTTPClient.
///
/// Bodies are read as the cache reads them: a slow reader makes the client stop reading from the
/// socket. Letting a body go, or cancelling the task, ends the exchange. AsyncHTTPClient reports no
/// 1xx heads, and has Foundation write the URL's escapes anew.
public final class AsyncHTTPClientOrigin: Origin {
    private let client: HTTPClient
    private let headSecondsMax: Double

    /// An origin whose client is set up by `configuration`; redirects and encodings are the
    /// cache's business, so following and decoding are turned off.
    ///
    /// `configuration.timeout` bounds connecting, and the silence between two pieces of a body.
    /// `headSecondsMax` bounds the wait for an answer's head where a request has no limit of its
    /// own.
    public init(
        configuration: HTTPClient.Configuration = HTTPClient.Configuration(
            timeout: .init(connect: .seconds(10), read: .seconds(60))
        ),
        headSecondsMax: Double = 60
    ) {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        configuration.decompression = .disabled
        client = HTTPClient(configuration: configuration)
        self.headSecondsMax = headSecondsMax
    }

    /// Closes the connections; to be called once, after the cache has been shut down.
    public func shutDown() async throws { try await client.shutdown() }

    /// Sends the request, and returns when the head of its answer is there.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        try Task.checkCancellation()
        let seconds = request.timeoutSeconds ?? headSecondsMax
        let response: HTTPClientResponse
        do {
            // The deadline ends with the head; the body has the client's read timeout.
            response = try await client.execute(
                HTTPClientRequest(request),
                deadline: .now() + .nanoseconds(Int64(seconds * 1e9))
            )
        } catch {
            throw Self.failure(error, isBody: false)
        }
        let fields = HeaderFields(response.headers.map { ($0.name, $0.value) })
        guard request.method != .head, response.status != .noContent,
            response.status != .notModified
        else { return OriginResponse(status: Int(response.status.code), fields: fields) }
        return OriginResponse(
            status: Int(response.status.code),
            fields: fields,
            body: BodyStream(
                ResponseBody(response.body),
                count: fields["Content-Length"].flatMap { Int($0) }
            )
        )
    }

    fileprivate static func failure(_ error: any Error, isBody: Bool) -> any Error {
        guard let error = error as? HTTPClientError else {
            return CacheError(isBody ? .bodyTruncated : .originFailed, detail: "\(error)")
        }
        switch error {
        case .cancelled: return CancellationError()
        case .connectTimeout, .deadlineExceeded, .getConnectionFromPoolTimeout, .readTimeout,
            .writeTimeout:
            return CacheError(.originTimedOut, detail: error.description)
        case .emptyHost, .emptyScheme, .invalidURL:
            return CacheError(.requestInvalid, detail: error.description)
        default:
            return CacheError(isBody ? .bodyTruncated : .originFailed, detail: error.description)
        }
    }
}

/// The body of an answer; its failures are told as the cache's own.
private final class ResponseBody: BodySource {
    private let body: BufferBody<HTTPClientResponse.Body>

    init(_ body: HTTPClientResponse.Body) { self.body = BufferBody(body) }

    func next() async throws -> ByteChunk? {
        do {
            return try await body.next()
        } catch {
            throw AsyncHTTPClientOrigin.failure(error, isBody: true)
        }
    }

    func cancel() { body.cancel() }
}

extension HTTPClientRequest {
    /// The same request for AsyncHTTPClient, which writes the framing itself.
    fileprivate init(_ request: OriginRequest) {
        self.init(url: request.url)
        method = HTTPMethod(rawValue: request.method.name)
        for (name, value) in request.fields.pairs where !Self.ofFraming.contains(name.lowercased())
        {
            headers.add(name: name, value: value)
        }
        guard let content = request.body else { return }
        if let chunk = content.availableChunk {
            body = .bytes(ByteBuffer(chunk))
            return
        }
        let count = content.count ?? request.fields["Content-Length"].flatMap { Int($0) }
        body = .stream(
            content.map { ByteBuffer($0) },
            length: count.map { .known(Int64($0)) } ?? .unknown
        )
    }

    private static let ofFraming: Set<String> = [
        "connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]
}
