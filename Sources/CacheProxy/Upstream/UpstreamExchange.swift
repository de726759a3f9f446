import CacheEngine
import CurlOrigin
import HTTPCaching
import Platform

/// A command to the event loop that moves the bytes of an exchange.
enum UpstreamCommand: Sendable {
    case start(UpstreamCall)
    case resume(TransferID)
    case resumeUpload(TransferID)
    case cancel(TransferID)
    /// A connection may be used: another exchange has ended.
    case granted(TransferID, ConnectionBudget, host: Int)
    /// The look-up of a host's addresses has ended.
    indirect case resolved(UpstreamHost.Name, Result<[SocketAddress], any Error>)
}

/// One call of an origin: the request and its way, passed to the event loop as one object.
final class UpstreamCall: Sendable {
    let exchange: Exchange
    let request: OriginRequest
    /// Whether the request is sent; otherwise only a connection is wanted.
    let isSent: Bool
    let url: UpstreamURL
    let origin: PlainOrigin

    init(
        _ exchange: Exchange,
        _ request: OriginRequest,
        isSent: Bool,
        _ url: UpstreamURL,
        _ origin: PlainOrigin
    ) {
        self.exchange = exchange
        self.request = request
        self.isSent = isSent
        self.url = url
        self.origin = origin
    }
}

/// One exchange on its event loop: the request, and how far it is.
///
/// Belongs to the thread of the loop.
final class UpstreamExchange {
    let call: UpstreamCall
    let host: UpstreamHost
    let upload: UploadPipe?
    var deadlines: TransferDeadlines
    /// The end of the time for a connection; `UInt64.max` unless one is being made.
    var connectBy = UInt64.max
    /// The end of the time for one address if others are left, or for the look-up of addresses if
    /// old ones are known.
    var addressBy = UInt64.max
    /// Whether it waits for the look-up of its host's addresses.
    var awaitsLookUp = false
    /// Whether it has, or waits for, a permit of the budget.
    var permit = Permit.none
    var connection: UpstreamConnection?
    /// The addresses not tried yet.
    var addresses: ArraySlice<SocketAddress> = []
    /// Whether sending the request twice has the same effect as sending it once (RFC 9110 §9.2.2).
    let isIdempotent: Bool
    /// How often the request was sent.
    var sendCount = 0

    /// Whether it can be sent again, if a kept connection turns out to be dead.
    var mayBeSentTwice: Bool {
        let isRepeatable = upload?.isRepeatable ?? true
        return isIdempotent && (isRepeatable || Mutant.sendsStreamsOnKept.isOn)
    }

    /// The error that ends it without a connection, because of `error`.
    ///
    /// A request that was sent before, on a kept connection that the origin then closed, has failed
    /// there. It must not look like an origin that was not reached: then another origin would be
    /// asked.
    func failure(because error: any Error) -> any Error {
        sendCount == 0 || error is LocalLack ? error : UpstreamFailure.closedUnanswered
    }

    /// Content was taken from its source, or by the socket.
    func contentMoved(now: UInt64) {
        deadlines.contentTaken(now: now)
        call.request.body?.noteMovement()
    }

    enum Permit { case none, awaited, held }

    init(_ call: UpstreamCall, _ host: UpstreamHost, _ upload: UploadPipe?, now: UInt64) {
        self.call = call
        self.host = host
        self.upload = upload
        deadlines = TransferDeadlines(
            call.origin.deadlines,
            head: call.request.timeout,
            now: now
        )
        isIdempotent =
            Mutant.repeatsAnyMethod.isOn || call.request.method.kind.isIdempotent
    }

    var id: TransferID { call.exchange.id }
    var exchange: Exchange { call.exchange }
    var origin: PlainOrigin { call.origin }

    /// Gives the address being tried, or the look-up, half of the remaining time if another address
    /// is left: some networks drop every packet to one of a host's addresses, or to a name server.
    func limitAddress(now: UInt64, hasOther: Bool) {
        let hasLimit = hasOther && connectBy != .max && connectBy > now
        addressBy = hasLimit ? now + (connectBy - now) / 2 : .max
    }
}
