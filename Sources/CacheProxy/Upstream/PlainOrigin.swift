package import CacheEngine
package import CurlOrigin
import Synchronization

/// An origin reached over plain HTTP/1.1, on the event loop of the worker that asks.
///
/// A task of a worker sends its requests on the worker's own thread, and with its connections. A
/// task of no worker uses an event loop that the origin starts for them. Like `CurlOrigin`, whose
/// configuration and rules it shares, it follows no redirects, decodes no content, and repeats only
/// an idempotent request on a kept connection that was dead. `https` goes to `secure`.
package final class PlainOrigin: ConnectingOrigin {
    /// Tells this origin from every other one, earlier ones included.
    ///
    /// The address of the object would not: an event loop keeps connections to the hosts of an
    /// origin that was released, and a new origin may get its memory.
    let number = PlainOrigin.counter.add(1, ordering: .relaxed).newValue
    let configuration: CurlConfiguration
    let limits: ResponseLimits
    let budget: ConnectionBudget
    private let secure: any ConnectingOrigin
    private static let counter = Atomic<UInt64>(0)
    /// The event loop for tasks of no worker, once there was one.
    private let spare = Mutex<Mailbox?>(nil)

    /// Creates an origin; `secure` is used for `https`.
    package init(configuration: CurlConfiguration, secure: any ConnectingOrigin) {
        self.configuration = configuration
        self.secure = secure
        limits = ResponseLimits(configuration.limits)
        budget = ConnectionBudget(
            perHostMax: configuration.connections.maximumPerHost,
            totalMax: configuration.connections.maximumTotal
        )
    }

    deinit { spare.withLock { $0 }?.post(.stop) }

    nonisolated(nonsending) package func fetch(_ request: OriginRequest) async throws
        -> OriginResponse
    {
        let url = try UpstreamURL(request.url)
        guard !url.isSecure else { return try await secure.fetch(request) }
        try Task.checkCancellation()
        let exchange = try start(request, url, host: url.hostText(in: request.url))
        return try await exchange.response(onInformational: request.onInformational)
    }

    /// Connects to the host of `url` and closes the connection.
    package func connect(to url: String) async throws {
        let parts = try UpstreamURL(url)
        guard !parts.isSecure else { return try await secure.connect(to: url) }
        try Task.checkCancellation()
        let exchange = try start(nil, parts, host: parts.hostText(in: url))
        if case .failure(let error) = await exchange.nextEvent() { throw error }
    }

    private func start(
        _ request: OriginRequest?,
        _ url: UpstreamURL,
        host: String
    ) throws -> Exchange {
        let mailbox = try Mailbox.current ?? spareMailbox()
        let exchange = Exchange(
            loop: mailbox,
            windowBytesMax: configuration.limits.maximumWindow.bytes
        )
        let wish = UpstreamWish(exchange, request, url, host: host, self)
        if !mailbox.post(.upstream(.start(wish))) {
            throw UpstreamFailure.shutDown
        }
        return exchange
    }

    private func spareMailbox() throws -> Mailbox {
        try spare.withLock { spare in
            if let spare { return spare }
            let started = try UpstreamThread.start()
            spare = started
            return started
        }
    }
}

extension ResponseLimits {
    fileprivate init(_ limits: CurlConfiguration.Limits) {
        self.init()
        headBytesMax = limits.maximumHeadSize.bytes
        trailerBytesMax = limits.maximumHeadSize.bytes
        fieldCountMax = limits.maximumFields
        interimCountMax = limits.maximumInformational
    }
}
