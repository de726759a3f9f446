/// The state of a connection to an origin, and the meaning of its events for the exchange on it.
///
///     connecting ──connected──▶ idle ──exchangeBegan──▶ awaiting ──headCame──▶ receiving
///          │                     ▲                          │                     │
///          │                     └───────bodyEnded, and both sides keep it────────┤
///          └──failure──▶ closed ◀──────end of the connection, fault, cancel───────┘
///
/// A pure value: it reads no clock and no socket.
///
/// A connection is kept if the head allows it (`UpstreamHead.mayPersist`) and the exchange has ended
/// clean (`bodyEnded`), for 60 seconds at most and as long as the loop has room for it
/// (`UpstreamTable.keep`, `idleMilliseconds`). It is used again (`UpstreamTable.findConnection`) by
/// the next request of the same loop to its host that may be sent twice
/// (`UpstreamExchange.mayBeSentTwice`), if the origin has sent nothing on it since (`isSilent`); the
/// one used last comes first.
///
/// Invariants:
/// 1. Another exchange begins only after the request of the last one was sent whole, its response
///    was read whole, and both said that the connection persists.
struct UpstreamMachine: Hashable {
    enum Phase: UInt8 {
        case connecting
        case idle
        /// The request is being sent, or its response is awaited.
        case awaiting
        /// The head of the response is there, the body arrives.
        case receiving
        case closed
    }

    private(set) var phase = Phase.connecting
    /// Whether the connection has carried an exchange before this one.
    private(set) var isKept = false
    /// Whether a byte of the response has arrived.
    private(set) var hasReceived = false
    /// Whether the whole request was sent.
    private(set) var hasSentAll = false
    private var mayPersist = true
    /// The origin has sent its last byte.
    private(set) var isEnding = false

    var isClosed: Bool { phase == .closed }
    var isBusy: Bool { phase == .awaiting || phase == .receiving }

    mutating func connected() {
        precondition(phase == .connecting, "A connection is made once")
        phase = .idle
    }

    mutating func exchangeBegan() {
        precondition(phase == .idle, "An exchange begins on an idle connection")
        phase = .awaiting
        hasReceived = false
        hasSentAll = false
        mayPersist = true
    }

    mutating func sentAll() { hasSentAll = true }

    mutating func received() { hasReceived = true }

    /// The final head is there; `mayPersist` is what it says about the connection.
    mutating func headCame(mayPersist: Bool) {
        precondition(phase == .awaiting, "A response has one head")
        phase = .receiving
        self.mayPersist = mayPersist
    }

    enum AfterBody: Hashable {
        case keep
        case close
    }

    /// The body has ended; `isInputLeft` says that more bytes came than the response has.
    mutating func bodyEnded(isInputLeft: Bool) -> AfterBody {
        precondition(phase == .receiving, "The body ends after its head")
        // The rest of a request that the origin did not wait for would be read as the next one.
        let isSent = hasSentAll || Mutant.keepsConnectionAfterEarlyAnswer.isOn
        let isKeptOn = mayPersist && isSent && !isInputLeft && !isEnding
        phase = isKeptOn ? .idle : .closed
        isKept = true
        return isKeptOn ? .keep : .close
    }

    mutating func inputEnds() { isEnding = true }

    enum Loss: Hashable {
        /// No exchange was on the connection.
        case nothing
        /// No connection was made.
        case unreached
        /// Nothing of an answer came on a kept connection: the origin may never have seen the
        /// request.
        case unansweredOnKept
        case unanswered
        case withinHead
        /// The body is complete if it ends with the connection, and truncated otherwise.
        case withinBody
    }

    /// The connection has ended, or failed.
    mutating func lost() -> Loss {
        defer { phase = .closed }
        switch phase {
        case .connecting: return .unreached
        case .idle, .closed: return .nothing
        case .awaiting where hasReceived: return .withinHead
        case .awaiting: return isKept ? .unansweredOnKept : .unanswered
        case .receiving: return .withinBody
        }
    }

    mutating func close() { phase = .closed }
}
