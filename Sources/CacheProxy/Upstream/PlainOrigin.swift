package import CacheEngine
package import CurlOrigin
import Synchronization

/// An origin reached over plain HTTP/1.1, on the event loop of the worker that asks.
///
/// A task of a worker sends its requests on the worker's own thread, and with its connections. A
/// task of no worker uses an event loop that the origin starts for them. Like `CurlOrigin`, whose
/// configuration and rules it shares, it follows no redirects, decodes no content, and repeats only
/// an idempotent request on a kept connection that was dead. `https` goes to `secure`.
package final class PlainOrigin: ConnectingOrigin, LoopOrigin {
    let configuration: CurlConfiguration
    let limits: ResponseLimits
    let deadlines: TransferDeadlines.Limits
    let budget: ConnectionBudget
    private let secure: any ConnectingOrigin
    /// The event loop for tasks of no worker, once there was one.
    private let spare = Mutex<Mailbox?>(nil)

    /// Creates an origin; `secure` is used for `https`.
    package convenience init(configuration: CurlConfiguration, secure: any ConnectingOrigin) {
        let budget = ConnectionBudget(configuration.connections)
        self.init(configuration: configuration, budget: budget, secure: secure)
    }

    /// The same with a budget that another origin may use too.
    init(
        configuration: CurlConfiguration,
        budget: ConnectionBudget,
        secure: any ConnectingOrigin
    ) {
        self.configuration = configuration
        self.budget = budget
        self.secure = secure
        limits = ResponseLimits(configuration.limits)
        deadlines = TransferDeadlines.Limits(configuration.deadlines)
    }

    deinit { spare.withLock { $0 }?.post(.stop) }

    nonisolated(nonsending) package func fetch(_ request: OriginRequest) async throws
        -> OriginResponse
    {
        guard let exchange = try start(request) else { return try await secure.fetch(request) }
        return try await exchange.response(onInformational: request.onInformational)
    }

    package var isOnLoop: Bool { Mailbox.current != nil }

    package func begin(
        _ request: consuming OriginRequest,
        _ completion: consuming @escaping @Sendable (consuming LoopAnswer) -> Void
    ) -> (any LoopExchange)? {
        let onInformational = request.onInformational.take()
        // After an error `fetch` is called, and throws it again.
        guard isOnLoop, let exchange = try? start(request) else { return nil }
        exchange.whenAnswered(onInformational: onInformational, completion)
        return exchange
    }

    /// Starts an exchange; returns `nil` if the URL is not one of plain `http`.
    @inline(never)
    private func start(
        _ request: consuming OriginRequest,
        isSent: Bool = true
    ) throws -> Exchange? {
        let url = try UpstreamURL(request.url)
        guard !url.isSecure else { return nil }
        try Task.checkCancellation()
        let mailbox = try Mailbox.current ?? spareMailbox()
        let exchange = Exchange(
            loop: mailbox,
            windowBytesMax: configuration.limits.windowBytesMax
        )
        let call = UpstreamCall(exchange, request, isSent: isSent, url, self)
        if !mailbox.post(.upstream(.start(call))) {
            throw UpstreamFailure.shutDown
        }
        return exchange
    }

    /// Connects to the host of `url` and closes the connection.
    package func connect(to url: String) async throws {
        guard let exchange = try start(OriginRequest(url: url), isSent: false) else {
            return try await secure.connect(to: url)
        }
        if case .failure(let error) = await exchange.nextEvent() { throw error }
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
