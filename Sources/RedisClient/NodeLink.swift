import Platform
internal import RESP
internal import Synchronization

/// One connection with its socket and its breaker; the thread of the loop uses it.
///
/// It makes a connection when commands wait, and sends a PING when the breaker's time is over. It
/// holds no rule: `NodeConnection` and `CircuitBreaker` decide.
final class NodeLink {
    private let node: Node
    private unowned let table: LinkTable
    private var connection: NodeConnection
    private var breaker: CircuitBreaker
    private var socket: NodeSocket?
    private var interest: SocketInterest = []
    /// The addresses of the server's name that are still to be tried.
    ///
    /// The next attempt begins with those that one leaves over. Otherwise an address that never
    /// answers, or a slow name server, could take the whole time of each attempt.
    private var candidates: ArraySlice<SocketAddress> = []
    /// The moment at which addresses that are left over are too old.
    private var candidatesEnd: UInt64 = 0
    private var isResolving = false
    /// The age at which addresses that are left over are looked up again.
    private static let candidatesNanoseconds: UInt64 = 30_000_000_000
    /// The moment of the last command.
    private var lastUse: UInt64
    private let idleNanoseconds: UInt64
    private var connectionCount = 0
    private var openingCount = 0
    /// The moment at which the connection was left last.
    private var lastLeaving: UInt64?
    /// The time between two connections that are left.
    private static let leavingNanoseconds: UInt64 = 1_000_000_000

    init(
        _ node: Node,
        _ table: LinkTable,
        _ options: RedisOptions,
        _ credentials: RedisURL.Credentials?,
        _ now: UInt64
    ) {
        self.node = node
        lastUse = now
        idleNanoseconds = options.idleLimit.nanoseconds
        self.table = table
        let waitsOnPurpose = node.key.lane.waitsOnPurpose
        connection = NodeConnection(
            .init(
                address: node.key.address,
                greeting: Greeting(
                    node.key.isSentinel ? nil : credentials,
                    connectionName: options.connectionName
                ),
                connectNanoseconds: options.connectLimit.nanoseconds,
                oldestReplyNanoseconds: waitsOnPurpose
                    ? .max : options.oldestReplyLimit.nanoseconds,
                replies: options.replies
            )
        )
        breaker = CircuitBreaker(options.breaker)
    }

    var nextMoment: UInt64 {
        let idleMoment = isUsed ? .max : lastUse &+ idleNanoseconds
        return min(connection.nextMoment, breaker.nextMoment, idleMoment)
    }

    /// Whether there is a connection or a wish for one.
    private var isUsed: Bool { connection.phase != .idle || connection.isWanted || isResolving }

    /// Whether there was no connection and no command for long.
    func isIdle(_ now: UInt64) -> Bool { !isUsed && now >= lastUse &+ idleNanoseconds }

    func enqueue(_ batch: Batch, _ now: UInt64) {
        lastUse = now
        connection.enqueue(batch, now: now)
    }

    /// Lets time pass, connects if commands wait, and writes.
    func step(_ now: UInt64) {
        if let closing = connection.timePassed(now: now) {
            // While a name is looked up, only the time to connect can end.
            lose(isResolving ? .failed(lateLookUpError) : closing, now)
        }
        if connection.isLeft {
            closeSocket()
            connection.close()
        }
        if breaker.timePassed(now: now) {
            begin(now)
        } else if connection.isWanted, connection.phase == .idle {
            if breaker.isClosed { begin(now) } else { connection.fail(suspendedError) }
        }
        write(now)
    }

    /// The server is not the one that is wanted: the next commands use a new connection, to the
    /// address that the server's name has by then.
    func leave(_ now: UInt64) {
        guard connection.phase == .ready else { return }
        if let lastLeaving, now < lastLeaving &+ Self.leavingNanoseconds { return }
        lastLeaving = now
        connection.leave()
    }

    private var lateLookUpError: RedisError {
        RedisError(
            .unreachable,
            detail: "The name of the server \(node.key.address) was not looked up within the limit"
        )
    }

    /// A batch was accepted before the breaker opened.
    private var suspendedError: RedisError {
        RedisError(.suspended, detail: "The server \(node.key.address) is suspended after failures")
    }

    /// Appends what is finished to `all`, frees the places of these batches, and adds the new
    /// connections to the node's counts.
    func takeFinished(into all: inout [NodeConnection.Finished]) {
        let finished = connection.takeFinished()
        guard !finished.isEmpty || connectionCount > 0 || openingCount > 0 else { return }
        node.admission.withLock { admission in
            for one in finished { admission.release(one) }
            admission.counts.connections += connectionCount
            admission.counts.openings += openingCount
        }
        connectionCount = 0
        openingCount = 0
        all += finished
    }

    func shutDown() {
        closeSocket()
        connection.fail(RedisLoop.shutDownError)
    }

    /// Lets the client forget the server of an idle link, unless callers ask for it all the time.
    func retire(_ now: UInt64) {
        if node.admission.withLock({ $0.takeWish() }) {
            lastUse = now
        } else {
            table.retire(node)
        }
    }
}

// MARK: - Connecting

extension NodeLink {
    private func begin(_ now: UInt64) {
        connection.begin(now: now)
        // The result of an earlier attempt serves this one too.
        guard !isResolving else { return }
        if now >= candidatesEnd { candidates = [] }
        guard candidates.isEmpty else { return connectNext("", now) }
        let place = node.key.address
        if let address = SocketAddress.literal(place.host, port: Int(place.port)) {
            found([address], now)
            connectNext("", now)
        } else if table.resolve(node) {
            isResolving = true
        } else {
            lose(.failed(.noThread), now)
        }
    }

    private func found(_ addresses: [SocketAddress], _ now: UInt64) {
        candidates = addresses[...]
        candidatesEnd = now &+ Self.candidatesNanoseconds
    }

    func resolved(_ result: Result<[SocketAddress], LookUpFailure>, _ now: UInt64) {
        isResolving = false
        let isAwaited = connection.phase == .connecting && socket == nil
        switch result {
        case .success(let addresses):
            found(addresses, now)
            if isAwaited { connectNext("", now) }
        case .failure(let failure):
            if isAwaited { lose(.failed(RedisError(failure, of: node.key.address)), now) }
        }
    }

    /// Tries the next address; `reason` says why the last one failed.
    private func connectNext(_ reason: String, _ now: UInt64) {
        var reason = reason
        while let address = candidates.popFirst() {
            if let socket = NodeSocket(connectingTo: address) {
                self.socket = socket
                interest = [.readable, .writable]
                table.watch(socket, for: interest, self)
                return
            }
            reason = String(cString: strerror(errno))
        }
        let detail = "Cannot connect to the server \(node.key.address): \(reason)"
        lose(.failed(RedisError(.unreachable, detail: detail)), now)
    }

    private func finishConnecting(_ now: UInt64) {
        guard let socket else { return }
        let code = socket.connectError()
        guard code == 0 else {
            closeSocket()
            return connectNext(String(cString: strerror(code)), now)
        }
        connectionCount += 1
        connection.opened()
        watchForInput(socket)
    }

    private func watchForInput(_ socket: NodeSocket) {
        guard interest != .readable else { return }
        interest = .readable
        table.watch(socket, for: interest, self)
    }

    private func closeSocket() { takeSocket()?.close() }

    private func takeSocket() -> NodeSocket? {
        guard let socket = socket.take() else { return nil }
        table.forget(socket)
        interest = []
        return socket
    }

    /// Closes the connection after a failure, and tells the breaker.
    private func lose(_ closing: NodeConnection.Closing, _ now: UInt64) {
        let wasOpen = !breaker.isClosed && breaker.state != .probing
        let error: RedisError
        switch closing {
        case .failed(let reason):
            error = reason
            breaker.failed(now: now)
        case .hung(let reason):
            error = reason
            breaker.hung(now: now)
        }
        // Commands that failed must not reach the server after those of the next connection.
        takeSocket()?.reset()
        connection.fail(error)
        guard !wasOpen, !breaker.isClosed else { return }
        openingCount += 1
        node.admission.withLock { $0.suspension = error }
    }
}

// MARK: - Bytes

extension NodeLink {
    /// The socket is ready; `room` takes its bytes.
    func happened(
        _ event: SocketReadiness,
        _ room: UnsafeMutableRawBufferPointer,
        _ now: UInt64
    ) {
        // An event of this turn may be older than the socket that now has its number.
        guard let socket, socket.descriptor == event.socket else { return }
        if connection.phase == .connecting {
            if event.isWritable || event.isBroken { finishConnecting(now) }
            return
        }
        if event.isWritable { watchForInput(socket) }
        if event.isReadable { read(socket, room, now) }
    }

    private func read(
        _ socket: NodeSocket,
        _ room: UnsafeMutableRawBufferPointer,
        _ now: UInt64
    ) {
        switch socket.receive(into: room) {
        case .moved(let count):
            let bytes = UnsafeRawBufferPointer(rebasing: room[..<count])
            let closing = connection.received(Span(_unsafeBytes: bytes), now: now)
            if connection.hasReply { breaker.succeeded() }
            if let closing { return lose(closing, now) }
            guard connection.phase == .ready else { break }
            if !candidates.isEmpty { candidates = [] }
            if breaker.state == .probing { endProbe() }
        case .wouldBlock: break
        case .ended: ended("the server closed it", now)
        case .failed(let code): ended(String(cString: strerror(code)), now)
        }
    }

    private func endProbe() {
        breaker.probeSucceeded()
        node.admission.withLock { $0.suspension = nil }
    }

    /// The connection has ended; without a missing reply that is no failure.
    private func ended(_ reason: String, _ now: UInt64) {
        guard connection.isOwed else {
            closeSocket()
            return connection.close()
        }
        let reply = connection.greetingError.map { ", after the reply: \(RedisError.plain($0))" }
        let cause = reason + (reply ?? "")
        let detail = "The connection to the server \(node.key.address) was cut: \(cause)"
        lose(.failed(RedisError(.cut, detail: detail)), now)
    }

    /// Writes once; the rest waits until the socket takes more.
    private func write(_ now: UInt64) {
        guard let socket, connection.hasOutput, !interest.contains(.writable) else { return }
        let outcome = connection.output.withUnsafeBytes { bytes in
            socket.send(UnsafeRawBufferPointer(rebasing: bytes[connection.outputStart...]))
        }
        switch outcome {
        case .moved(let count): connection.wrote(count)
        case .wouldBlock: break
        case .ended: return
        case .failed(let code): return ended(String(cString: strerror(code)), now)
        }
        guard connection.hasOutput else { return }
        interest = [.readable, .writable]
        table.watch(socket, for: interest, self)
    }
}
