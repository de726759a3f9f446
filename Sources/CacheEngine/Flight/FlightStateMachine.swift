/// One origin fetch shared by every request that asked for the same key while it ran.
///
///     fetching ──answered──▶ answered ──closed──▶ over
///      │   ▲  │                                     ▲
///      │   │  └──answered for few, abandoned, ──────┘
///      └───┘     failed without a successor
///     failed, and a waiter is elected
///
/// A pure value: it never suspends, reads no clock and holds no task. `Flight` performs the actions
/// it returns. A `Seat` is what `Flight` knows of a waiter; the machine does not look into it.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. Waiters exist only while fetching.
/// 2. `attempts` is between 1 and `attemptsMax`.
/// 3. An asker that still waits is among the waiters.
struct FlightStateMachine<Seat> {
    typealias WaiterID = WaitingLine<Seat>.Ticket

    private enum State {
        case fetching
        case answered
        case over
    }

    private var state = State.fetching
    /// The waiters, in the order of their arrival.
    private(set) var line = WaitingLine<Seat>()
    /// The waiter whose request is under way, while it waits.
    private(set) var asker: WaiterID?
    private(set) var attempts = 1
    private let isWanted: Bool

    let waitersMax: Int
    let attemptsMax: Int

    /// Creates a flight; `isWanted` means that the response is wanted even without waiters.
    init(isWanted: Bool, waitersMax: Int, attemptsMax: Int) {
        precondition(waitersMax > 0 && attemptsMax > 0)
        self.isWanted = isWanted
        self.waitersMax = waitersMax
        self.attemptsMax = attemptsMax
    }

    /// Whether no head has arrived yet.
    var isUnanswered: Bool { state == .fetching }
    /// Whether later requests must look elsewhere.
    var isOver: Bool { state == .over }
    func isWaiting(_ waiter: WaiterID) -> Bool { line[waiter] != nil }

    enum JoinAction: Hashable {
        /// Wait under this identifier until told.
        case wait(WaiterID)
        /// Read the answer, which has arrived.
        case readAnswer
        /// Look again: the response is already stored, or will not arrive.
        case lookAgain
        /// Refuse: another waiter would exceed `waitersMax`, which bounds memory.
        ///
        /// The request fetches on its own (`FlightEscape.crowded`).
        case refuse
    }

    mutating func join(_ seat: @autoclosure () -> Seat, as role: FlightRole) -> JoinAction {
        defer { checkInvariants() }
        switch state {
        case .over: return .lookAgain
        case .answered: return .readAnswer
        case .fetching:
            guard line.count < waitersMax || Mutant.refusesNobody.isOn else { return .refuse }
            assert(role == .follower || asker == nil, "a flight has one asker")
            let waiter = line.enter(seat())
            if role == .asker { asker = waiter }
            return .wait(waiter)
        }
    }

    /// Changes the seat of a waiter; returns `false` if it has left.
    mutating func update(_ waiter: WaiterID, _ change: (inout Seat) -> Void) -> Bool {
        line.update(waiter, change)
    }

    enum LeaveAction: Hashable {
        /// Tell the waiter that it has left.
        case resume
        /// Tell the waiter, and end the fetch: no interested request is left.
        case resumeAndEndFetch
        /// The waiter was already told.
        case nothing
    }

    /// Removes a waiter that gives up; its place is free at once.
    ///
    /// The other waiters are not told, even if the waiter is the asker: the fetch goes on for them.
    mutating func leave(_ waiter: WaiterID) -> LeaveAction {
        defer { checkInvariants() }
        guard line.leave(waiter) != nil else { return .nothing }
        assert(state == .fetching, "waiters exist only while fetching")
        if asker == waiter { asker = nil }
        guard line.isEmpty, !isWanted || Mutant.endsWantedFlights.isOn else { return .resume }
        state = .over
        return .resumeAndEndFetch
    }

    /// Releases all waiters, because the head has arrived; each must be told once.
    mutating func answered(for audience: FlightAudience) -> WaitingLine<Seat> {
        precondition(state == .fetching, "A flight is answered once")
        defer { checkInvariants() }
        state = audience == .everyone ? .answered : .over
        return release()
    }

    enum FailAction {
        /// This waiter's request is the next attempt; the waiter continues to wait.
        case elect(WaiterID)
        /// Tell all of these waiters the error; no attempt follows.
        case giveUp(WaitingLine<Seat>)
    }

    /// Whether another attempt may follow if this one fails.
    var hasAttemptsLeft: Bool { attempts < attemptsMax }

    /// Ends an attempt without a head; `next` takes over if it waits and attempts are left.
    ///
    /// The asker must have left the line before: the failure is the answer to its own request.
    mutating func failed(electing next: WaiterID?) -> FailAction {
        precondition(state == .fetching && asker == nil, "A flight fails before it is answered")
        defer { checkInvariants() }
        if hasAttemptsLeft, !Mutant.electsNobody.isOn, let next, isWaiting(next) {
            attempts += 1
            asker = next
            return .elect(next)
        }
        state = .over
        return .giveUp(release())
    }

    /// Removes the asker from the line, so that it can be told of its own request's failure.
    mutating func dismissAsker() -> (waiter: WaiterID, seat: Seat)? {
        defer { checkInvariants() }
        guard let waiter = asker.take() else { return nil }
        let seat = line.leave(waiter)
        assert(seat != nil, "an asker that still waits is among the waiters")
        return seat.map { (waiter, $0) }
    }

    /// Ends the flight and releases the remaining waiters; later requests look again.
    mutating func close() -> WaitingLine<Seat> {
        defer { checkInvariants() }
        state = .over
        return release()
    }

    private mutating func release() -> WaitingLine<Seat> {
        asker = nil
        return line.takeAll()
    }

    func checkInvariants() {
        #if ENGINE_CHECKS
            precondition(state == .fetching || line.isEmpty)
            precondition((1...attemptsMax).contains(attempts))
            precondition(asker.map { isWaiting($0) } ?? true)
            line.checkInvariants()
        #endif
    }
}

extension FlightStateMachine: Sendable where Seat: Sendable {}

/// Whether a waiter's request is the one that is sent.
enum FlightRole: Hashable, Sendable {
    case asker
    case follower
}
