public import AsyncHTTPClient
public import CacheEngine
import NIOBridge
public import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// An origin that sends its requests over the network with AsyncHTTPClient.
///
/// The cache's reads drive the reads from the socket, so a slow reader slows down the client.
/// Dropping a body or cancelling the task ends the exchange. AsyncHTTPClient does not report 1xx
/// heads, and Foundation rewrites the percent-encoding of its URLs.
public final class AsyncHTTPClientOrigin: Origin {
    private let client: HTTPClient
    private let maximumHeadTime: Duration

    /// Creates an origin with the given client configuration.
    ///
    /// Redirects and content codings are up to the cache, so the client neither follows redirects
    /// nor decodes content. The cache decides also what a failed connection means, so the client
    /// does not try it again, whatever `configuration.connectionPool` says.
    /// `configuration.timeout` limits the time to connect and the time between two pieces of a body.
    /// `maximumHeadTime` limits the wait for the head of a response if the request has no limit of
    /// its own.
    public init(
        configuration: HTTPClient.Configuration = HTTPClient.Configuration(
            timeout: .init(connect: .seconds(10), read: .seconds(60))
        ),
        maximumHeadTime: Duration = .seconds(60)
    ) {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        configuration.decompression = .disabled
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(configuration: configuration)
        self.maximumHeadTime = maximumHeadTime
    }

    /// Closes the connections; call it once, after the cache has been shut down.
    public func shutDown() async throws { try await client.shutdown() }

    /// Sends the request, and returns when the head of the response has arrived.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        try Task.checkCancellation()
        try Self.checkPort(of: request.url)
        let limit = request.timeout ?? maximumHeadTime
        let response: HTTPClientResponse
        do {
            // The deadline applies to the head only; the client's read timeout applies to the body.
            response = try await client.execute(
                HTTPClientRequest(request),
                deadline: .now() + TimeAmount(limit)
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

    /// Throws if the URL's port is over 65535, which SwiftNIO shortens to 16 bits or does not
    /// survive, and Foundation may leave out.
    private static func checkPort(of url: String) throws {
        let parts = url.utf8.split(
            separator: UInt8(ascii: "/"),
            maxSplits: 2,
            omittingEmptySubsequences: false
        )
        guard parts.count == 3 else { return }
        let authority = parts[2].prefix { !Self.endsOfAuthority.contains($0) }
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")) else { return }
        let port = authority[authority.index(after: colon)...]
        guard !port.isEmpty, port.allSatisfy({ Self.digits.contains($0) }) else { return }
        guard UInt16(Substring(port)) == nil else { return }
        throw CacheError(
            .requestInvalid,
            detail: "The URL has an invalid port: `\(Substring(port.prefix(20)))`; give 1 to 65535"
        )
    }

    private static let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    private static let endsOfAuthority = "/?#".utf8

    fileprivate static func failure(_ error: any Error, isBody: Bool) -> any Error {
        if !isBody, isOfConnecting(error) {
            return CacheError(.originUnreachable, detail: "\(error)")
        }
        guard let error = error as? HTTPClientError else {
            return CacheError(isBody ? .bodyTruncated : .originFailed, detail: "\(error)")
        }
        switch error {
        case .cancelled: return CancellationError()
        case .deadlineExceeded, .getConnectionFromPoolTimeout, .readTimeout, .writeTimeout:
            return CacheError(.originTimedOut, detail: error.description)
        case .emptyHost, .emptyScheme, .invalidURL:
            return CacheError(.requestInvalid, detail: error.description)
        default:
            return CacheError(isBody ? .bodyTruncated : .originFailed, detail: error.description)
        }
    }

    /// Whether no connection could be made, for which the request's content cannot be the cause.
    private static func isOfConnecting(_ error: any Error) -> Bool {
        switch error {
        // A host name: no address, or no address that accepts a connection.
        case is NIOConnectionError: return true
        // A numeric address.
        case let error as IOError:
            return [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH].contains(error.errnoCode)
        // Among others, a certificate that cannot be verified.
        case NIOSSLError.handshakeFailed: return true
        case let error as HTTPClientError: return connectingErrors.contains(error)
        default: return false
        }
    }

    private static let connectingErrors: [HTTPClientError] = [
        .connectTimeout, .httpProxyHandshakeTimeout, .socksHandshakeTimeout, .tlsHandshakeTimeout,
    ]
}

/// The body of a response; its failures are reported as errors of the cache.
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
    /// Converts the request for AsyncHTTPClient, which writes the framing fields itself.
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
        "connection", "content-length", "keep-alive", "proxy-authorization", "proxy-connection",
        "te", "trailer", "transfer-encoding", "upgrade",
    ]
}
