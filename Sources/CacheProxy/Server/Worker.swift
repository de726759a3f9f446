import CProxyShims
import CacheEngine
import Platform

/// One event loop: a thread, its listening socket, and all connections accepted from it.
///
/// A request whose response is in memory, or in a file in the page cache, is answered in the event
/// that brought it: one read, one look into the cache, one write. Every other request gets a
/// `PendingResponse`, which posts to the mailbox. Readiness is edge-triggered and registered once
/// per connection; a read that fills less than its buffer has emptied the socket, so no call is
/// spent to find that out.
///
/// Belongs to the thread that runs it, and is deliberately not `Sendable`.
final class Worker {
    /// The parts of a worker, passed to its thread.
    struct Seed: Sendable {
        let listener: ListeningSocket
        let mailbox: Mailbox
        let counters: WorkerCounters
        let configuration: ServerConfiguration
        let responder: any Responder
        let log: AccessLogFile?
        let clients: ServedClients
        let clock: any CacheClock
        let report: @Sendable (String) -> Void
    }

    /// Bytes of one read, and bytes read from one connection before the others get their turn.
    static let readBytes = 64 * 1024
    /// The time between two checks of the time limits, and their precision.
    static let sweepMilliseconds: Int64 = 250
    /// The largest piece of a body that is copied after its head.
    ///
    /// Copying it costs less than holding its entry, which all threads that hit one key would write
    /// to, and than passing the kernel a second piece.
    static let copiedBytesMax = 4 * 1024
    /// Pieces written with one call.
    static let piecesMax = 64

    /// Bytes sent for one connection before the others get their turn.
    static let sendBytesMax = 256 * 1024
    /// Bytes read and sent in a turn before only small responses are sent at once: to send them
    /// takes 0.2 to 0.5 ms of a core.
    static let turnBytesMax = 512 * 1024
    /// The time of a turn, after which only the first request of a connection is answered.
    static let turnNanoseconds: UInt64 = 500_000
    /// The number of messages between two looks at the clock.
    static let messagesPerLook = 8
    /// The largest response that never waits for a turn.
    static let smallBytesMax = 64 * 1024
    /// The bytes that a client must take within its limit, if the system holds so many: one that
    /// takes a few would keep its place for as long as it likes.
    static let takenBytesMin: Int32 = 16 * 1024

    var configuration: ServerConfiguration
    /// Milliseconds of each time limit of a connection, in the order of `Deadline.allCases`.
    var limits: [Int64]
    let responder: any Responder
    let mailbox: Mailbox
    let counters: WorkerCounters
    let clients: ServedClients
    let clock: any CacheClock
    /// Takes one line for people.
    let report: @Sendable (String) -> Void
    let poller: Poller
    /// The exchanges with origins of this worker's requests.
    let upstream: UpstreamTable
    let loops: LoopGuard
    let defaultAuthority: String
    let isListeningToTCP: Bool
    var listener: Int32
    var isListening = false
    var connections: [Connection?] = []
    /// The end of the time limit of the connection of the same index; `Int64.max` for none.
    var deadlines: [Int64] = []
    var generations: [UInt32] = []
    var free: [Int] = []
    var openCount = 0

    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: readBytes, alignment: 64)
    let vectors = UnsafeMutablePointer<iovec>.allocate(capacity: piecesMax * 2)
    let out = OutputBuffer()
    var batch: [OutputPiece] = []
    var batchBytes = 0
    var writer: ResponseHeadWriter
    var parser = RequestParser()
    /// The messages of the mailbox, taken up to `nextMessage`.
    var messages: [WorkerMessage] = []
    var nextMessage = 0
    /// Bytes read and sent in this turn.
    var turnBytes = 0
    /// The end of this turn's time; 0 until somebody asks.
    private var turnEnds: UInt64 = 0
    /// Requests taken from one connection in this turn.
    var requestsInARow = 0
    /// The connection's next request waits, because the turn has no more time.
    var isOutOfTime = false
    /// Connections whose turn ended before their input did.
    var waitingForTurn: [ConnectionID] = []
    var log: AccessLog?
    var now = coarseMilliseconds()
    var nowSeconds: Int64
    var isDraining = false
    /// In a drain: the time to close the listener, and the time to close idle connections.
    var listenerEnds = Int64.max
    var idleEnds = Int64.max
    var hasEndedIdle = false
    /// Its last client has left, and no other one can come.
    var hasLostClients = false
    /// Connections that may make room for others, the longest idle one last.
    var candidates: [Candidate] = []
    var nextCandidateSearch = Int64.min
    var refusedPeers = ReportLimit()
    var refusedHeaders = ReportLimit()
    var isStopped = false

    init(_ seed: Seed) throws(SystemError) {
        configuration = seed.configuration
        limits = seed.configuration.timeouts.milliseconds
        responder = seed.responder
        mailbox = seed.mailbox
        counters = seed.counters
        clients = seed.clients
        clock = seed.clock
        report = seed.report
        listener = seed.listener.descriptor
        poller = try Poller()
        upstream = UpstreamTable(poller, seed.mailbox)
        loops = LoopGuard(name: seed.configuration.name)
        defaultAuthority = seed.listener.address.authority
        isListeningToTCP = if case .tcp = seed.listener.address { true } else { false }
        writer = ResponseHeadWriter(name: seed.configuration.name)
        writer.stripsTags = seed.configuration.tags == .strip
        log = seed.log.map { AccessLog($0) }
        nowSeconds = seed.clock.nowSeconds
        guard poller.watchInput(mailbox.descriptor, token: Poller.mailboxToken) else {
            throw SystemError(.watch)
        }
        startListening()
    }

    deinit {
        scratch.deallocate()
        vectors.deallocate()
    }

    /// Runs until it is stopped or drained.
    func run() {
        mailbox.becomeCurrent()
        var nextSweep = now + Self.sweepMilliseconds
        while !isStopped, !isDrained {
            let wakes = isDraining ? min(nextSweep, now + Self.drainStepMilliseconds) : nextSweep
            let count = waitForEvents(milliseconds: max(1, wakes - now))
            now = coarseMilliseconds()
            upstream.beginTurn(now: now)
            nowSeconds = clock.nowSeconds
            // Each of the three has its own share of bytes, so none delays another.
            takeTurn { for index in 0..<count { handle(poller[index]) } }
            takeTurn(takeNextTurns)
            upstream.takeTurns()
            takeTurn(takeMessages)
            if isDraining { continueDrain() }
            if now >= nextSweep {
                sweep()
                nextSweep = now + Self.sweepMilliseconds
            }
            upstream.sweepIfDue()
        }
        end()
        mailbox.resignCurrent()
    }

    /// Waits for events, unless there is other work; returns their number.
    private func waitForEvents(milliseconds: Int64) -> Int {
        let hasWork =
            !waitingForTurn.isEmpty || upstream.hasWork || nextMessage < messages.count
        guard !hasWork, mailbox.fallAsleep() else { return poller.wait(milliseconds: 0) }
        defer { mailbox.wakeUp() }
        return poller.wait(milliseconds: Int32(milliseconds))
    }

    private func takeTurn(_ body: () -> Void) {
        turnBytes = 0
        turnEnds = 0
        body()
        counters.raise(.turnBytesMax, to: turnBytes)
    }

    /// Whether the turn has time left, which begins with the first question.
    func hasTurnTime() -> Bool {
        let time = monotonicNanoseconds()
        if turnEnds == 0 { turnEnds = time + Self.turnNanoseconds }
        return time < turnEnds
    }

    private func handle(_ event: cp_event) {
        switch event.token {
        case Poller.listenerToken: accept()
        case Poller.mailboxToken: mailbox.silenceBell()
        case UpstreamTable.tokenBit...: upstream.handle(event)
        default:
            guard let connection = connection(ConnectionID(token: event.token)) else { return }
            guard event.flags & UInt32(CP_GONE) == 0 else { return close(connection) }
            connection.machine.socketChanged(
                isReadable: event.flags & UInt32(CP_READABLE) != 0,
                isWritable: event.flags & UInt32(CP_WRITABLE) != 0,
                isEnding: event.flags & UInt32(CP_ENDED) != 0
            )
            // A client that goes on sending gets its turn in the line, not with every event.
            if !connection.machine.waitsForTurn { advance(connection) }
        }
    }

    private func takeNextTurns() {
        guard !waitingForTurn.isEmpty else { return }
        let waiting = waitingForTurn
        waitingForTurn = []
        var taken = 0
        while taken < waiting.count, turnBytes < Self.turnBytesMax, hasTurnTime() {
            defer { taken += 1 }
            guard let connection = connection(waiting[taken]) else { continue }
            connection.machine.turnCame()
            advance(connection)
        }
        waitingForTurn.insert(contentsOf: waiting[taken...], at: 0)
    }

    private func end() {
        stopListening()
        for connection in connections { if let connection { close(connection) } }
        upstream.end()
        mailbox.close(messages[nextMessage...])
        log?.finish()
    }
}

// MARK: - Connections

extension Worker {
    func connection(_ id: ConnectionID) -> Connection? {
        let index = Int(id.index)
        guard index < connections.count, generations[index] == id.generation else { return nil }
        return connections[index]
    }

    func close(_ connection: Connection) {
        switch connection.machine.close(endsBody: connection.response.endsWithConnection) {
        case .nothing: return
        case .close: break
        case .reset: resetOnClose(connection.socket)
        }
        if let pending = connection.pendingResponse {
            countAborted(connection)
            pending.cancel()
            finishLog(connection)
        } else if connection.machine.hasQueuedOutput || !batch.isEmpty {
            countAborted(connection)
        }
        connection.sink?.fail()
        connection.pendingResponse = nil
        connection.sink = nil
        closeDescriptor(connection.socket)
        let index = Int(connection.id.index)
        connections[index] = nil
        deadlines[index] = .max
        generations[index] = (generations[index] + 1) & ConnectionID.generationMax
        free.append(index)
        openCount -= 1
        counters.add(-1, to: .connectionsOpen)
        if openCount < configuration.connectionsMax { startListening() }
    }

    /// A response has broken off, or its last bytes stay unsent: the connection ends with it.
    func countAborted(_ connection: Connection) {
        guard !connection.hasAborted else { return }
        connection.hasAborted = true
        counters.add(1, to: .aborted)
    }

    /// Closes so that the client cannot take it for the end of a body.
    func reset(_ connection: Connection) {
        resetOnClose(connection.socket)
        close(connection)
    }

    func change(_ connection: Connection, _ change: ConnectionMachine.DeadlineChange) {
        switch change {
        case .keep: break
        case .stop: deadlines[Int(connection.id.index)] = .max
        case .start(let deadline):
            deadlines[Int(connection.id.index)] = now + limit(deadline)
        }
    }

    /// Milliseconds of a connection's time limit.
    func limit(_ deadline: ConnectionMachine.Deadline) -> Int64 { limits[Int(deadline.rawValue)] }

    /// A scan of a table of numbers is cheaper than a timer structure: a request costs one store,
    /// and ten thousand connections cost a few microseconds four times a second.
    private func sweep() {
        for index in deadlines.indices where deadlines[index] <= now {
            if let connection = connections[index] { timeOut(connection) }
        }
        log?.flush()
        startListening()
    }

    private func timeOut(_ connection: Connection) {
        let standsStill = connection.machine.standsStill
        let action = connection.machine.deadlinePassed(
            isResponseRunning: connection.response.isRunning,
            takesOutput: takesOutput(connection)
        )
        if case .wait(let deadline) = action { return change(connection, deadline) }
        if standsStill { counters.add(1, to: .timeouts) }
        change(connection, .stop)
        switch action {
        case .wait: break
        case .refuse:
            refuseHead(connection, .timedOut)
            advance(connection)
        case .ignoreContent:
            connection.sink?.fail()
            connection.sink = nil
        case .close: close(connection)
        case .refuseHeader: refuseHeader(connection, .late)
        }
    }

    /// Whether the client has taken enough of the bytes that the system held when its limit began.
    private func takesOutput(_ connection: Connection) -> Bool {
        guard connection.machine.hasQueuedOutput, !Mutant.cutsSteadyReaders.isOn else {
            return false
        }
        return connection.progress.hasAdvanced(connection.socket, byAtLeast: Self.takenBytesMin)
    }
}

extension ServerConfiguration.Timeouts {
    /// Milliseconds of each time limit of a connection.
    var milliseconds: [Int64] {
        ConnectionMachine.Deadline.allCases.map { deadline in
            switch deadline {
            case .head: head.milliseconds
            case .idle: idle.milliseconds
            case .content: content.milliseconds
            case .write: write.milliseconds
            case .linger: Self.linger.milliseconds
            }
        }
    }
}
