import CacheEngine
import CurlOrigin
import Platform
import Testing

@testable import CacheProxy

/// An upstream table whose event loop the test turns by hand.
final class UpstreamStepper {
    let mailbox: Mailbox
    let poller: Poller
    let table: UpstreamTable
    private var messages: [WorkerMessage] = []

    init() throws {
        mailbox = try Mailbox()
        poller = try Poller()
        table = UpstreamTable(poller, mailbox)
    }

    deinit {
        table.end()
        mailbox.close([])
    }

    /// Begins an exchange at once, without a turn of the loop.
    func start(_ request: OriginRequest, at origin: PlainOrigin) throws -> Exchange {
        let exchange = Exchange(loop: mailbox, windowBytesMax: 256 * 1024)
        table.take(.start(try UpstreamCall(exchange, request, origin)))
        return exchange
    }

    /// Waits for events or messages for a moment, and handles them.
    func turn() {
        let count = poller.wait(milliseconds: 5)
        table.beginTurn(now: coarseMilliseconds())
        for index in 0..<count { table.handle(poller[index]) }
        table.takeTurns()
        mailbox.take(into: &messages)
        for case .upstream(let command) in messages { table.take(command) }
        table.sweepIfDue()
    }

    /// Turns the loop until `isDone`, for at most about ten seconds.
    func turn(until isDone: () -> Bool) {
        for _ in 0..<2_000 where !isDone() { turn() }
        #expect(isDone())
    }

    /// Sends `request` and turns the loop until it has ended.
    func fetch(_ request: OriginRequest, at origin: PlainOrigin) throws -> Exchange {
        let exchange = try start(request, at: origin)
        turn { table.isIdle }
        return exchange
    }
}

extension Exchange {
    /// The body of the response that arrived.
    var text: String {
        get async throws { try await response(onInformational: nil).body.collect().text }
    }
}

extension UpstreamCall {
    /// The call for a response to `request`.
    convenience init(
        _ exchange: Exchange,
        _ request: OriginRequest,
        isSent: Bool = true,
        _ origin: PlainOrigin
    ) throws {
        self.init(exchange, request, isSent: isSent, try UpstreamURL(request.url), origin)
    }

    /// A call that no loop begins.
    convenience init(_ request: OriginRequest) throws {
        try self.init(
            Exchange(loop: Mailbox(), windowBytesMax: 1),
            request,
            PlainOrigin()
        )
    }
}

extension PlainOrigin {
    /// An origin without TLS.
    convenience init(_ configuration: CurlConfiguration = .init()) {
        self.init(
            configuration: configuration,
            secure: CurlOrigin(configuration: configuration)
        )
    }
}
