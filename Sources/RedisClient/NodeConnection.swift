internal import RESP

/// One connection to a server, without its socket: the order of commands and replies.
///
///     idle ──begin──▶ connecting ──opened──▶ greeting ──last reply──▶ ready ──leave──▶ leaving
///       ▲                 └───────────────────┴──────────── fail ───────┘                 │
///       └──────────────────────────────────── no reply is missing ────────────────────────┘
///
/// A pure value: the caller gives the time, moves the bytes, and takes what is finished. Commands
/// wait until the connection is ready; then each is written at once, and the replies belong to the
/// commands in their order.
///
/// Invariants:
/// 1. `sent` is empty unless the phase is `ready` or `leaving`.
/// 2. `waiting` is empty if the phase is `ready`.
/// 3. `partial.count` is below the count of the first batch in `sent`.
struct NodeConnection {
    enum Phase: Hashable {
        case idle
        case connecting
        case greeting
        case ready
        /// Commands wait for the next connection, and this one for the replies that are missing.
        case leaving
    }

    /// A batch that needs nothing more, and what its caller gets.
    struct Finished {
        let batch: Batch
        let outcome: Result<[RESPValue], RedisError>
    }

    /// A reason to close the connection.
    enum Closing: Hashable {
        case failed(RedisError)
        /// The oldest reply is older than any server in order needs.
        case hung(RedisError)
    }

    struct Rules: Sendable {
        let address: NodeAddress
        let greeting: Greeting
        let connectNanoseconds: UInt64
        /// `UInt64.max` for a lane whose commands wait on purpose.
        let oldestReplyNanoseconds: UInt64
        let replies: RESPLimits
    }

    private let rules: Rules
    private(set) var phase = Phase.idle
    private(set) var finished: [Finished] = []
    /// The bytes to write from `outputStart` on.
    private(set) var output: [UInt8] = []
    private(set) var outputStart = 0
    private var connectDeadline = UInt64.max
    private var greetingSteps: ArraySlice<Greeting.Step> = []
    /// The text of an error that the greeting passed over.
    ///
    /// A server with too many clients sends one unasked, which is taken for the reply to SETNAME.
    private(set) var greetingError: String?
    private var parser: RESPParser
    private var waiting = BatchQueue()
    private var sent = BatchQueue()
    /// The replies to the first batch in `sent` so far.
    private var partial: [RESPValue] = []

    init(_ rules: Rules) {
        self.rules = rules
        parser = RESPParser(rules.replies)
    }

    /// Whether batches wait for a connection.
    var isWanted: Bool { !waiting.isEmpty }
    /// Whether replies are missing.
    var isOwed: Bool { !sent.isEmpty || !greetingSteps.isEmpty }
    var hasOutput: Bool { outputStart < output.count }
    /// Whether a finished command has its reply; others ended without one.
    var hasReply: Bool {
        finished.contains { if case .success = $0.outcome { true } else { false } }
    }

    /// The moment to call `timePassed`; `UInt64.max` while no time limit runs.
    var nextMoment: UInt64 {
        var moment = min(waiting.earliestDeadline, sent.earliestDeadline, connectDeadline)
        if let oldest = sent.first {
            let (limit, overflows) = oldest.moment.addingReportingOverflow(
                rules.oldestReplyNanoseconds
            )
            if !overflows { moment = min(moment, limit) }
        }
        return moment
    }

    /// Takes what is finished since the last call.
    mutating func takeFinished() -> [Finished] {
        defer { finished.removeAll(keepingCapacity: finished.count <= 4_096) }
        return finished
    }

    // MARK: - Wishes

    mutating func enqueue(_ batch: Batch, now: UInt64) {
        guard phase == .ready else { return waiting.append(batch, moment: now) }
        write(batch, now: now)
    }

    /// A connection is being made.
    mutating func begin(now: UInt64) {
        precondition(phase == .idle)
        phase = .connecting
        connectDeadline = now &+ rules.connectNanoseconds
    }

    /// The next commands need another connection.
    mutating func leave() {
        if phase == .ready, !Mutant.keepsToReplicas.isOn { phase = .leaving }
    }

    /// Whether the connection is left, and no reply is missing.
    var isLeft: Bool { phase == .leaving && sent.isEmpty }

    // MARK: - Facts

    /// The socket is connected.
    mutating func opened() {
        guard phase == .connecting else { return }
        phase = .greeting
        greetingSteps = rules.greeting.steps[...]
        output += rules.greeting.bytes
    }

    /// The socket accepted bytes of the output.
    mutating func wrote(_ count: Int) {
        outputStart += count
        let restCount = output.count - outputStart
        if restCount == 0 {
            // The storage is kept if it is small: neither a large value nor the commands that waited
            // for a server that hung keep their memory.
            output.removeAll(keepingCapacity: output.capacity <= 1 << 17)
        } else if outputStart >= max(restCount, 64 << 10) {
            // Each byte moves at most once for one that was sent.
            output.removeFirst(outputStart)
        } else {
            return
        }
        outputStart = 0
    }

    /// Bytes arrived; returns the reason to close if they cannot be replies.
    mutating func received(_ bytes: Span<UInt8>, now: UInt64) -> Closing? {
        var place = 0
        while true {
            switch parser.parse(bytes, from: place) {
            case .needsMore: return nil
            case .refused(let fault):
                let detail = "The server \(rules.address) sent an invalid reply: \(fault)"
                return .failed(RedisError(.misbehaved, detail: detail))
            case .value(let value, let end):
                place = end
                let isFollowed = end < bytes.count
                if let closing = accept(value, isFollowed: isFollowed, now: now) { return closing }
            }
        }
    }

    private mutating func accept(
        _ value: RESPValue,
        isFollowed: Bool,
        now: UInt64
    ) -> Closing? {
        if let step = greetingSteps.popFirst() {
            if let fault = rules.greeting.fault(value, to: step, from: rules.address) {
                return .failed(fault)
            }
            if case .error(let text) = value { greetingError = text }
            guard greetingSteps.isEmpty else { return nil }
            // No command is sent yet, so what follows replies to none.
            if isFollowed { return .failed(surplusReply) }
            becomeReady(now: now)
            return nil
        }
        guard let batch = sent.first?.batch else { return .failed(surplusReply) }
        partial.append(value)
        guard partial.count == batch.count else { return nil }
        _ = sent.popFirst()
        finished.append(Finished(batch: batch, outcome: .success(partial)))
        partial = []
        return nil
    }

    private var surplusReply: RedisError {
        let detail = "The server \(rules.address) sent a reply to no command"
        return RedisError(.misbehaved, detail: detail)
    }

    private mutating func becomeReady(now: UInt64) {
        phase = .ready
        connectDeadline = .max
        greetingError = nil
        for batch in waiting.removeAll() { write(batch, now: now) }
    }

    /// A batch whose caller has gone is not sent: its late reply would end the connection.
    private mutating func write(_ batch: Batch, now: UInt64) {
        guard batch.deadline > now else {
            let detail = "The command for \(rules.address) was late before it was sent"
            return finish(batch, RedisError(.timedOut, detail: detail))
        }
        output += batch.bytes
        sent.append(batch, moment: now)
    }

    /// Ends the batches that wait for too long; returns the reason to close if a reply is late.
    mutating func timePassed(now: UInt64) -> Closing? {
        for batch in waiting.removeExpired(now: now) {
            let detail = "The server \(rules.address) was not connected within the limit"
            finish(batch, RedisError(.timedOut, detail: detail))
        }
        if connectDeadline <= now {
            let detail = "The server \(rules.address) was not connected within the limit"
            return .failed(RedisError(.unreachable, detail: detail))
        }
        let late = RedisError(
            .timedOut,
            detail: "The server \(rules.address) did not reply within the limit"
        )
        if let oldest = sent.first, now >= oldest.moment,
            now - oldest.moment >= rules.oldestReplyNanoseconds
        {
            return .hung(late)
        }
        if sent.earliestDeadline <= now, !Mutant.keepsLateConnections.isOn { return .failed(late) }
        #if ENGINE_CHECKS
            checkInvariants()
        #endif
        return nil
    }

    /// The connection is closed: every batch fails with `error`.
    mutating func fail(_ error: RedisError) {
        for batch in sent.removeAll() { finish(batch, error) }
        for batch in waiting.removeAll() { finish(batch, error) }
        close()
    }

    /// The connection was closed without a loss: no reply was missing.
    mutating func close() {
        phase = .idle
        connectDeadline = .max
        greetingSteps = []
        greetingError = nil
        partial = []
        output = []
        outputStart = 0
        parser = RESPParser(rules.replies)
    }

    private mutating func finish(_ batch: Batch, _ error: RedisError) {
        finished.append(Finished(batch: batch, outcome: .failure(error)))
    }

    #if ENGINE_CHECKS
        private func checkInvariants() {
            precondition(sent.isEmpty || phase == .ready || phase == .leaving)
            precondition(waiting.isEmpty || phase != .ready)
            precondition(partial.isEmpty || partial.count < sent.first?.batch.count ?? 0)
            sent.checkInvariants()
            waiting.checkInvariants()
        }
    #endif
}
