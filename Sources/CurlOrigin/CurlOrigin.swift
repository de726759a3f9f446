public import CacheEngine
internal import Synchronization

/// An origin reached over the network by libcurl, in HTTP/1.1 and HTTP/2.
///
/// One private thread moves the bytes of all exchanges and keeps their connections. The thread ends
/// when the origin and every response it returned are released. The origin follows no redirects,
/// decodes no content, and retries only an idempotent request on a kept connection that was dead.
/// It sends no fields that the request does not have, except `Host` and the framing fields.
///
/// The fields of the caller's connection are not sent (RFC 9110 §7.6.1), nor is its
/// `Proxy-Authorization`. Credentials for the origin's own proxy belong in
/// `CurlConfiguration.proxy`. A gateway removes the fields that a client's `Connection` lists before
/// it asks the cache, because a response may vary by them.
///
/// A connection over which credentials of NTLM, Negotiate or Kerberos were sent is not used again:
/// the origin may take the next request on it for one of the same user. A login that needs several
/// requests on one connection fails.
public final class CurlOrigin: Origin {
    private let configuration: CurlConfiguration
    private let startLoop: StartLoop
    /// The event loop; `nil` if this machine lacked something when the origin was created.
    private let loop: EventLoop?
    /// In that case, the event loop that a later request has started.
    private let laterLoop = Mutex<EventLoop?>(nil)

    typealias StartLoop = @Sendable (CurlConfiguration) throws -> EventLoop

    /// Creates an origin that connects as `configuration` says.
    public convenience init(configuration: CurlConfiguration = CurlConfiguration()) {
        self.init(configuration: configuration) { try EventLoop.start($0) }
    }

    /// The same with event loops that a test starts.
    init(configuration: CurlConfiguration, startLoop: @escaping StartLoop) {
        self.configuration = configuration
        self.startLoop = startLoop
        loop = try? startLoop(configuration)
    }

    deinit { (loop ?? laterLoop.withLock { $0 })?.post(.retire) }

    /// Sends the request, and returns when the head of the response has arrived.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        try Task.checkCancellation()
        let prepared = try PreparedRequest(request, isProxied: configuration.hasHTTPProxy)
        let exchange = try start(prepared)
        return try await exchange.response(onInformational: request.onInformational)
    }

    private func start(_ request: PreparedRequest) throws -> Exchange {
        let loop = try loop ?? startedLater()
        let exchange = Exchange(
            loop: loop,
            windowBytesMax: configuration.limits.windowBytesMax
        )
        loop.start(exchange, request)
        return exchange
    }

    /// The lack may have passed, so each request tries until one has an event loop.
    private func startedLater() throws -> EventLoop {
        try laterLoop.withLock { loop in
            if let loop { return loop }
            let started = try startLoop(configuration)
            loop = started
            return started
        }
    }

    /// Connects to the host of `url`, TLS included, and closes the connection.
    ///
    /// No request is sent, so this tests only whether the origin can be reached.
    /// - Throws: `CacheError.Code.originUnreachable` if the origin cannot be reached.
    public func connect(to url: String) async throws {
        try Task.checkCancellation()
        let prepared = try PreparedRequest(
            OriginRequest(url: url),
            isProxied: configuration.hasHTTPProxy,
            isConnectOnly: true
        )
        if case .failure(let error) = try await start(prepared).nextEvent() { throw error }
    }
}
