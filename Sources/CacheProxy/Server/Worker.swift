import CProxyShims
import CacheEngine

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// One event loop: a thread, its listening socket, and all connections accepted from it.
///
/// What is in memory is answered here, in the event that brought the request: one read, one look
/// into the cache, one write. Everything else becomes an exchange, whose task talks back through the
/// mailbox. Readiness is edge-triggered and registered once per connection; a read that fills less
/// than its buffer has emptied the socket, so no call is spent on finding that out.
///
/// Belongs to its thread: made there, and deliberately not `Sendable`. What every hit touches is not
/// checked for overlapping access at run time, here and in `Connection` and `OutputBuffer`: no call
/// comes back into one of these values while it changes, and the checks took 3 % of a hit's time.
final class Worker {
    /// What a worker is made of; it crosses from the thread that starts it.
    struct Seed: Sendable {
        let listener: ListeningSocket
        let mailbox: Mailbox
        let counters: WorkerCounters
        let configuration: ServerConfiguration
        let responder: any Responder
        let log: AccessLogFile?
        let clock: any CacheClock
    }

    /// Bytes of one read.
    static let readBytes = 64 * 1024
    /// How often time limits are looked at; limits are met to within this.
    static let sweepMilliseconds: Int64 = 250
    /// Connections accepted per event, so that those that are there get their turn.
    static let acceptsMax = 64
    /// Pieces written with one call.
    static let piecesMax = 64

    static let listenerToken = UInt64.max
    static let mailboxToken = UInt64.max - 1

    let configuration: ServerConfiguration
    let responder: any Responder
    let mailbox: Mailbox
    let counters: WorkerCounters
    let clock: any CacheClock
    let poller: Poller
    let loops: LoopGuard
    let defaultAuthority: String
    var listener: Int32
    var isListening = false
    @exclusivity(unchecked) var connections: [Connection?] = []
    /// When the connection of the same index has taken too long; `Int64.max` for never.
    @exclusivity(unchecked) var deadlines: [Int64] = []
    var generations: [UInt32] = []
    var free: [Int] = []
    var openCount = 0

    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: readBytes, alignment: 64)
    let vectors = UnsafeMutablePointer<iovec>.allocate(capacity: piecesMax * 2)
    let out = OutputBuffer()
    @exclusivity(unchecked) var batch: [OutputPiece] = []
    var batchBytes = 0
    @exclusivity(unchecked) var writer: ResponseHeadWriter
    @exclusivity(unchecked) var parser = RequestParser()
    var messages: [WorkerMessage] = []
    /// Connections whose turn ended before their input did.
    var waitingForTurn: [ConnectionID] = []
    var log: AccessLog?
    var now = coarseMilliseconds()
    var nowSeconds: Int64
    var isDraining = false
    var isStopped = false

    init(_ seed: Seed) throws(SystemError) {
        configuration = seed.configuration
        responder = seed.responder
        mailbox = seed.mailbox
        counters = seed.counters
        clock = seed.clock
        listener = seed.listener.descriptor
        poller = try Poller()
        loops = LoopGuard(name: seed.configuration.name)
        defaultAuthority = seed.listener.address.authority
        writer = ResponseHeadWriter(name: seed.configuration.name)
        log = seed.log.map { AccessLog($0) }
        nowSeconds = seed.clock.nowSeconds
        guard poller.watchInput(mailbox.descriptor, token: Self.mailboxToken) else {
            throw SystemError("Cannot watch the mailbox")
        }
        startListening()
    }

    deinit {
        scratch.deallocate()
        vectors.deallocate()
    }

    /// Runs until it is stopped, or drained.
    func run() {
        var nextSweep = now + Self.sweepMilliseconds
        while !isStopped, !(isDraining && openCount == 0) {
            let pause = waitingForTurn.isEmpty ? Int32(max(1, nextSweep - now)) : 0
            let count = poller.wait(milliseconds: pause)
            now = coarseMilliseconds()
            nowSeconds = clock.nowSeconds
            for index in 0..<count { handle(poller[index]) }
            takeNextTurns()
            if now >= nextSweep {
                sweep()
                nextSweep = now + Self.sweepMilliseconds
            }
        }
        end()
    }

    private func handle(_ event: cp_event) {
        switch event.token {
        case Self.listenerToken: accept()
        case Self.mailboxToken: takeMessages()
        default:
            guard let connection = connection(ConnectionID(token: event.token)) else { return }
            if event.flags & UInt32(CP_WRITABLE) != 0 { connection.isWritable = true }
            if event.flags & UInt32(CP_READABLE) != 0 { connection.isReadable = true }
            if event.flags & UInt32(CP_ENDED) != 0 { connection.isEndReported = true }
            if event.flags & UInt32(CP_GONE) != 0 {
                close(connection)
            } else {
                advance(connection)
            }
        }
    }

    private func takeNextTurns() {
        guard !waitingForTurn.isEmpty else { return }
        let waiting = waitingForTurn
        waitingForTurn = []
        for id in waiting {
            guard let connection = connection(id) else { continue }
            connection.waitsForTurn = false
            advance(connection)
        }
    }

    private func end() {
        stopListening()
        for connection in connections { if let connection { close(connection) } }
        log?.flush()
        mailbox.close()
    }
}

// MARK: - Connections

extension Worker {
    func startListening() {
        guard !isListening, listener >= 0, !isDraining else { return }
        isListening = poller.watchInput(listener, token: Self.listenerToken)
    }

    func pauseListening() {
        guard isListening else { return }
        poller.forget(listener)
        isListening = false
    }

    func stopListening() {
        guard listener >= 0 else { return }
        pauseListening()
        closeDescriptor(listener)
        listener = -1
    }

    private func accept() {
        for _ in 0..<Self.acceptsMax {
            guard openCount < configuration.connectionsMax else { return pauseListening() }
            let socket = cp_accept(listener)
            if socket < 0 {
                // Out of descriptors: wait until a connection ends, or the next sweep.
                if errno == EMFILE || errno == ENFILE { pauseListening() }
                if errno == ECONNABORTED || errno == EINTR { continue }
                return
            }
            open(socket)
        }
    }

    private func open(_ socket: Int32) {
        let index: Int
        if let reused = free.popLast() {
            index = reused
        } else {
            index = connections.count
            connections.append(nil)
            deadlines.append(.max)
            generations.append(0)
        }
        let id = ConnectionID(index: UInt32(index), generation: generations[index])
        guard poller.watch(socket, token: id.token) else {
            closeDescriptor(socket)
            free.append(index)
            return
        }
        connections[index] = Connection(socket: socket, id: id)
        deadlines[index] = now + configuration.timeouts.headMilliseconds
        openCount += 1
        counters.add(1, to: .connections)
        counters.add(1, to: .connectionsOpen)
    }

    func connection(_ id: ConnectionID) -> Connection? {
        let index = Int(id.index)
        guard index < connections.count, generations[index] == id.generation else { return nil }
        return connections[index]
    }

    func close(_ connection: Connection) {
        guard !connection.isClosed else { return }
        connection.isClosed = true
        // Only the end of the connection tells where such a body ends.
        let isCutShort =
            connection.answer.hasBegun && connection.answer.framing == .untilClose
            && (connection.exchange != nil || !connection.queue.isEmpty)
        if isCutShort { Self.endsWithReset(connection.socket) }
        if let exchange = connection.exchange {
            counters.add(1, to: .aborted)
            exchange.cancel()
            finishLog(connection)
        }
        connection.sink?.fail()
        connection.exchange = nil
        connection.sink = nil
        closeDescriptor(connection.socket)
        let index = Int(connection.id.index)
        connections[index] = nil
        deadlines[index] = .max
        generations[index] &+= 1
        free.append(index)
        openCount -= 1
        counters.add(-1, to: .connectionsOpen)
        if openCount < configuration.connectionsMax { startListening() }
    }

    /// A close that the client cannot take for the regular end of a body.
    func reset(_ connection: Connection) {
        Self.endsWithReset(connection.socket)
        close(connection)
    }

    private static func endsWithReset(_ socket: Int32) {
        var option = linger(l_onoff: 1, l_linger: 0)
        let size = socklen_t(MemoryLayout<linger>.size)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, size)
    }

    func setDeadline(_ connection: Connection, after milliseconds: Int64) {
        deadlines[Int(connection.id.index)] = now + milliseconds
    }

    /// Sets a limit where what came before has left none.
    func ensureDeadline(_ connection: Connection, after milliseconds: Int64) {
        if deadlines[Int(connection.id.index)] == .max {
            setDeadline(connection, after: milliseconds)
        }
    }

    func removeDeadline(_ connection: Connection) { deadlines[Int(connection.id.index)] = .max }

    /// A table of numbers is walked faster than a timer structure is kept: a request then costs one
    /// store, and ten thousand connections a few microseconds four times a second.
    private func sweep() {
        for index in deadlines.indices where deadlines[index] <= now {
            if let connection = connections[index] { timeOut(connection) }
        }
        log?.flush()
        startListening()
    }

    private func timeOut(_ connection: Connection) {
        counters.add(1, to: .timeouts)
        let isInHead =
            connection.pending != nil && connection.exchange == nil
            && connection.content == nil && connection.queue.isEmpty && !connection.isLingering
        if isInHead {
            refuse(connection, .timedOut)
            return advance(connection)
        }
        let isAnswering = connection.exchange != nil && connection.answer.hasBegun
        guard connection.content != nil, isAnswering, connection.queue.isEmpty else {
            return close(connection)
        }
        // The client reads an answer that came before the end of its content: no more of that.
        connection.closesBehindAnswer = true
        connection.isContentPaused = true
        removeDeadline(connection)
    }
}

// MARK: - Messages

extension Worker {
    private func takeMessages() {
        mailbox.take(into: &messages)
        let taken = messages
        messages = []
        for message in taken { take(message) }
        messages = taken
        messages.removeAll(keepingCapacity: taken.count <= 1_024)
    }

    private func take(_ message: WorkerMessage) {
        switch message {
        case .informational(let exchange, let status, let fields):
            withConnection(of: exchange) { inform($0, status: status, fields: fields) }
        case .answered(let exchange, let response):
            withConnection(of: exchange) { takeAnswer($0, response) }
        case .chunk(let exchange, let chunk):
            withConnection(of: exchange) { takeChunk($0, chunk) }
        case .ended(let exchange): withConnection(of: exchange) { finishAnswer($0) }
        case .failed(let exchange, let error):
            withConnection(of: exchange) { takeFailure($0, error) }
        case .wantsContent(let exchange): withConnection(of: exchange) { resumeContent($0) }
        case .drain: drain()
        case .stop: isStopped = true
        case .reopenLog: log?.reopen()
        }
    }

    /// What an exchange says counts only while its connection still waits for it.
    private func withConnection(of exchange: Exchange, _ body: (Connection) -> Void) {
        guard let connection = connection(exchange.connection), connection.exchange === exchange
        else { return }
        body(connection)
        advance(connection)
    }

    private func drain() {
        isDraining = true
        // Who has connected, or sent a request, before this is still answered.
        if isListening { accept() }
        stopListening()
        for connection in connections {
            guard let connection else { continue }
            connection.isReadable = true
            advance(connection)
        }
    }
}
