public import AsyncHTTPClient
public import CacheEngine
import NIOBridge
public import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

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
    /// The limit without a byte of a body; `nil` means none.
    private let maximumIdleTime: Duration?

    /// Creates an origin with the given client configuration.
    ///
    /// Redirects and content codings are up to the cache, so the client neither follows redirects
    /// nor decodes content. The cache decides also what a failed connection means, so the client
    /// does not try it again, whatever `configuration.connectionPool` says.
    /// `configuration.timeout` limits the time to connect and, by `read`, the time between two pieces
    /// of a body. `maximumHeadTime` limits the wait for the head of a response if the request has no
    /// limit of its own. It begins anew with each piece of the request's content that is sent.
    /// `configuration.connectionPool` limits the connections to one host. An exchange keeps its
    /// connection until it ends. A slow reader, a stream of events or a slow upload makes that late,
    /// so with a limit below the number of such exchanges other requests wait: the default is 1024,
    /// and that of AsyncHTTPClient 8.
    public init(
        configuration: HTTPClient.Configuration = HTTPClient.Configuration(
            timeout: .init(connect: .seconds(10), read: .seconds(60)),
            connectionPool: .init(
                idleTimeout: .seconds(60),
                concurrentHTTP1ConnectionsPerHostSoftLimit: 1024
            )
        ),
        maximumHeadTime: Duration = .seconds(60)
    ) {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        configuration.decompression = .disabled
        configuration.connectionPool.retryConnectionEstablishment = false
        // The client would apply this limit to the wait for the head too, however long it may be.
        maximumIdleTime = configuration.timeout.read.map { .nanoseconds($0.nanoseconds) }
        configuration.timeout.read = nil
        client = HTTPClient(configuration: configuration)
        self.maximumHeadTime = maximumHeadTime
    }

    /// Closes the connections; call it once, after the cache has been shut down.
    public func shutDown() async throws { try await client.shutdown() }

    /// Sends the request, and returns when the head of the response has arrived.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        try Task.checkCancellation()
        try Self.checkPort(of: request.url)
        let watch = SilenceWatch(limit: request.timeout ?? maximumHeadTime)
        let response: HTTPClientResponse
        do {
            response = try await head(of: HTTPClientRequest(request, watch), watch)
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
                ResponseBody(response.body, maximumIdleTime: maximumIdleTime),
                count: fields["Content-Length"].flatMap { Int($0) }
            )
        )
    }

    /// Sends the request and returns the head of the response, unless the watch ends before.
    private func head(
        of request: HTTPClientRequest,
        _ watch: SilenceWatch
    ) async throws -> HTTPClientResponse {
        try await withThrowingTaskGroup(of: HTTPClientResponse?.self) { [client] group in
            group.addTask { try await client.execute(request, deadline: .distantFuture) }
            group.addTask {
                try await watch.waitForSilence()
                return nil
            }
            defer { group.cancelAll() }
            guard let response = try await group.next() ?? nil else {
                throw CacheError(
                    .originTimedOut,
                    detail: "The origin sent no response within its deadline"
                )
            }
            return response
        }
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
        if error is CacheError || error is CancellationError { return error }
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
    private let body: EndableBody<HTTPClientResponse.Body>
    private let watch: SilenceWatch?
    private let watching: Task<Void, any Error>?

    init(_ body: HTTPClientResponse.Body, maximumIdleTime: Duration?) {
        let body = EndableBody(body)
        self.body = body
        let watch = maximumIdleTime.map { SilenceWatch(limit: $0) }
        // Nothing is expected before the first read.
        watch?.pause()
        self.watch = watch
        watching = watch.map { watch in
            Task { [weak body] in
                try await watch.waitForSilence()
                body?.end(
                    with: CacheError(.originTimedOut, detail: "The body stopped: no byte in time")
                )
            }
        }
    }

    deinit { watching?.cancel() }

    func next() async throws -> ByteChunk? {
        do {
            watch?.resume()
            defer { watch?.pause() }
            return try await body.next()
        } catch {
            throw AsyncHTTPClientOrigin.failure(error, isBody: true)
        }
    }

    func cancel() {
        watching?.cancel()
        body.cancel()
    }
}

/// Waits until nothing has moved for a time.
private final class SilenceWatch: Sendable {
    private let limit: Duration
    /// The moment of the last movement; `nil` while nothing is expected.
    private let moved = Mutex<ContinuousClock.Instant?>(.now)

    init(limit: Duration) { self.limit = limit }

    /// Notes a movement, or that one is expected from now on.
    func resume() { moved.withLock { $0 = .now } }

    /// Nothing is expected until `resume`.
    func pause() { moved.withLock { $0 = nil } }

    /// Returns when nothing has moved for the limit; throws if the task is cancelled.
    func waitForSilence() async throws {
        while true {
            let end = (moved.withLock { $0 } ?? .now) + limit
            guard end > .now else { return }
            try await Task.sleep(until: end, clock: .continuous)
        }
    }
}

extension HTTPClientRequest {
    /// Converts the request for AsyncHTTPClient, which writes the framing fields itself.
    ///
    /// Each piece of the content that the client takes counts as a movement.
    fileprivate init(_ request: OriginRequest, _ watch: SilenceWatch) {
        self.init(url: request.url)
        method = HTTPMethod(rawValue: request.method.name)
        for (name, value) in request.fields.pairs where !Self.ofFraming.contains(name.lowercased())
        {
            headers.add(name: name, value: value)
        }
        if request.fields.authenticatesConnection {
            headers.add(name: "Connection", value: "close")
        }
        guard let content = request.body else { return }
        if let chunk = content.availableChunk {
            body = .bytes(ByteBuffer(chunk))
            return
        }
        let count = content.count ?? request.fields["Content-Length"].flatMap { Int($0) }
        body = .stream(
            content.map { chunk in
                watch.resume()
                return ByteBuffer(chunk)
            },
            length: count.map { .known(Int64($0)) } ?? .unknown
        )
    }

    private static let ofFraming: Set<String> = [
        "connection", "content-length", "keep-alive", "proxy-authorization", "proxy-connection",
        "te", "trailer", "transfer-encoding", "upgrade",
    ]
}

extension HeaderFields {
    /// Whether `Authorization` has a scheme that authenticates the connection, and not the request.
    ///
    /// The origin may take every later request on that connection for one of the same user (RFC 4559
    /// §6). The engine has these three prefixes too, but not in a public declaration.
    fileprivate var authenticatesConnection: Bool {
        values("Authorization").contains { credentials in
            let scheme = credentials.lowercased().utf8
            return ["ntlm", "nego", "kerberos"].contains { scheme.starts(with: $0.utf8) }
        }
    }
}
