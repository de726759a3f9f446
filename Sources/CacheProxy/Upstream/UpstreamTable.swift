import CProxyShims
import CacheEngine
import CurlOrigin
import Platform

/// The exchanges with origins on one event loop, and the connections kept for them.
///
/// Belongs to the thread of its loop, which passes it events, commands and the time. An exchange
/// takes a permit, then an idle connection or a new one; the end of the exchange gives both back.
///
/// Invariants:
/// 1. An exchange is in `exchanges` until it is finished, and is finished once.
/// 2. A connection is in `connections` as long as its socket is open.
final class UpstreamTable {
    /// The tokens of its connections have this bit; of all other tokens, only the two highest have
    /// it.
    static let tokenBit: UInt64 = 1 << 63
    /// The time between two checks of the time limits.
    static let sweepMilliseconds = Worker.sweepMilliseconds
    /// The time that a connection is kept without an exchange.
    static let idleMilliseconds: Int64 = 60_000
    /// Bytes of one read.
    static let readBytes = Worker.readBytes
    /// Bytes read and written on all connections before the loop does other work.
    static let turnBytesMax = 256 * 1024

    let poller: Poller
    let mailbox: Mailbox
    /// Opens a socket of a family that does not block, or returns -1 and sets `errno`; a test puts
    /// its own here.
    var makeSocket: (Int32) -> Int32 = { family in
        let socket = openStreamSocket(family)
        guard socket >= 0, cp_prepare(socket) != 0 else { return socket }
        closeDescriptor(socket)
        return -1
    }
    /// The time in milliseconds.
    private(set) var now = coarseMilliseconds()
    /// Under the numbers of their identifiers.
    private var exchanges = NumberTable<UpstreamExchange>()
    var hosts: [UpstreamHost.Name: UpstreamHost] = [:]
    /// The host of the last exchange that began; it is one of `hosts`.
    var lastHost: UpstreamHost?
    /// Under their tokens.
    private(set) var connections = NumberTable<UpstreamConnection>()
    var waitingForTurn: [UpstreamConnection] = []
    var isOpen = true
    /// Bytes read and written in this turn.
    var turnBytes = 0
    private var nextToken: UInt64 = 0
    private var nextSweep: Int64

    let out = OutputBuffer()
    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: readBytes, alignment: 64)

    init(_ poller: Poller, _ mailbox: Mailbox) {
        self.poller = poller
        self.mailbox = mailbox
        nextSweep = now + Self.sweepMilliseconds
    }

    deinit { scratch.deallocate() }

    /// Whether no exchange is under way.
    var isIdle: Bool { exchanges.isEmpty }
    /// Whether a connection waits for its next turn.
    var hasWork: Bool { !waitingForTurn.isEmpty }
    var millisecondsToSweep: Int64 { max(1, nextSweep - now) }
    var nanoseconds: UInt64 { UInt64(now) * 1_000_000 }

    // MARK: Events and commands

    /// Begins a turn of the loop, which passes events next.
    func beginTurn(now: Int64) {
        self.now = now
        turnBytes = 0
    }

    func handle(_ event: cp_event) {
        guard let connection = connections[event.token] else { return }
        let flags = Int(event.flags)
        let isGone = flags & CP_GONE != 0
        if flags & CP_READABLE != 0 || isGone { connection.isReadable = true }
        if flags & CP_WRITABLE != 0 || isGone { connection.isWritable = true }
        if flags & CP_ENDED != 0 || isGone { connection.machine.inputEnds() }
        if connection.machine.phase == .connecting { return finishConnecting(connection) }
        move(connection)
    }

    func take(_ command: UpstreamCommand) {
        switch command {
        case .start(let call): start(call)
        case .resume(let id): withConnection(of: id, resumeReading)
        case .resumeUpload(let id): withConnection(of: id, move)
        case .cancel(let id): if let exchange = exchange(id) { cut(exchange, nil) }
        case .granted(let id, let budget, let host): granted(id, by: budget, host: host)
        case .resolved(let name, let result): resolved(name, result)
        }
    }

    private func withConnection(of id: TransferID, _ body: (UpstreamConnection) -> Void) {
        if let connection = exchange(id)?.connection { body(connection) }
    }

    /// The exchange, until it is finished.
    func exchange(_ id: TransferID) -> UpstreamExchange? { exchanges[id.number] }

    func add(_ exchange: UpstreamExchange) { exchanges.insert(exchange, under: exchange.id.number) }

    private func resumeReading(_ connection: UpstreamConnection) {
        guard connection.isHeld else { return }
        connection.isHeld = false
        connection.exchange?.deadlines.readerResumed(now: nanoseconds)
        move(connection)
    }

    /// Does all work that a connection allows now, within its turn.
    func move(_ connection: UpstreamConnection) {
        if connection.machine.isBusy { sendRequest(connection) }
        if !connection.machine.isClosed { receive(connection) }
    }

    /// Gives the connections in line their turns, which have their own share of bytes, so that
    /// events do not delay them.
    func takeTurns() {
        guard !waitingForTurn.isEmpty else { return }
        turnBytes = 0
        let waiting = waitingForTurn
        waitingForTurn = []
        var taken = 0
        while taken < waiting.count, turnBytes < Self.turnBytesMax {
            let connection = waiting[taken]
            taken += 1
            connection.waitsForTurn = false
            if !connection.machine.isClosed { move(connection) }
        }
        waitingForTurn.insert(contentsOf: waiting[taken...], at: 0)
    }

    func waitForTurn(_ connection: UpstreamConnection) {
        guard !connection.waitsForTurn else { return }
        connection.waitsForTurn = true
        waitingForTurn.append(connection)
    }

    // MARK: Ending

    /// Ends an exchange and its connection; without an error the reader has left.
    func cut(_ exchange: UpstreamExchange, _ error: (any Error)?) {
        if let connection = exchange.connection { close(connection) }
        finish(exchange, .failure(error ?? CancellationError()))
    }

    /// Tells the reader the outcome, once.
    func finish(_ exchange: UpstreamExchange, _ outcome: ExchangeEvent) {
        guard exchanges.remove(exchange.id.number) != nil else { return }
        exchange.connection?.exchange = nil
        exchange.connection = nil
        exchange.upload?.close()
        switch exchange.permit {
        case .held where !Mutant.forgetsPermits.isOn:
            exchange.origin.budget.give(exchange.host.place)
        case .awaited where !Mutant.staysInLine.isOn:
            exchange.origin.budget.leave(exchange.host.place, exchange.id)
        default: break
        }
        exchange.permit = .none
        exchange.host.exchangeCount -= 1
        exchange.exchange.finish(outcome)
    }

    func close(_ connection: UpstreamConnection) {
        connection.machine.close()
        guard connections.remove(connection.token) != nil else { return }
        closeDescriptor(connection.socket)
    }

    /// Ends every exchange: the loop has ended.
    func end() {
        isOpen = false
        for exchange in exchanges.values { cut(exchange, UpstreamFailure.shutDown) }
        for connection in connections.values { close(connection) }
        hosts = [:]
        lastHost = nil
    }

    /// Adds a connection of the socket, and watches it.
    func open(
        _ socket: Int32,
        to host: UpstreamHost,
        at address: SocketAddress
    ) -> UpstreamConnection? {
        nextToken += 1
        let token = Self.tokenBit | nextToken
        guard poller.watch(socket, token: token) else { return nil }
        let connection = UpstreamConnection(
            socket: socket,
            token: token,
            host: host,
            address: address
        )
        connections.insert(connection, under: token)
        return connection
    }

    // MARK: Time limits

    func sweepIfDue() {
        guard now >= nextSweep else { return }
        nextSweep = now + Self.sweepMilliseconds
        for exchange in exchanges.values {
            noteTakenContent(exchange)
            if nanoseconds >= exchange.connectBy {
                cut(exchange, exchange.failure(because: UpstreamFailure.connectTimedOut))
            } else if nanoseconds >= exchange.addressBy, exchange.awaitsLookUp {
                useOldAddresses(exchange)
            } else if nanoseconds >= exchange.addressBy, let connection = exchange.connection {
                giveUp(connection, ETIMEDOUT)
            } else if let kind = exchange.deadlines.expired(at: nanoseconds) {
                let isSourceSilent = exchange.upload?.isSourceSilent ?? false
                cut(exchange, CurlFailure.error(kind, isSourceSilent: isSourceSilent))
            }
        }
        for host in hosts.values {
            for connection in host.idle where connection.idleEnd <= now { close(connection) }
            host.idle.removeAll { $0.machine.isClosed }
        }
        hosts = hosts.filter { !$0.value.isUnused(now: now) }
        lastHost = nil
    }
}
