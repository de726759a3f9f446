/// One origin fetch shared by every request that asked for the same key while it ran.
///
///     fetching ──answered──▶ answered ──landed──▶ landed
///      │    ▲ │                                     ▲
///      │    │ └──answered for few, abandoned────────┤
///    failed │ elected                               │
///      ▼    │                                       │
///     re-electing ──nobody left, or no attempts─────┘
///
/// A pure value: it never suspends, reads no clock and holds no task. `Flight` performs the actions
/// it returns.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. Waiters exist only while fetching.
/// 2. `attempts` is between 1 and `attemptsMax`.
/// 3. A leader that still waits is among the waiters.
struct FlightStateMachine {
    typealias WaiterID = WaitingLine<Void>.Ticket

    private enum State {
        case fetching
        case answered
        case landed
    }

    private var state = State.fetching
    /// In the order they came; the first takes over when the leader fails.
    private var line = WaitingLine<Void>()
    /// Whose request is under way, while that one waits.
    private(set) var leader: WaiterID?
    private(set) var attempts = 1
    private let isWanted: Bool

    let waitersMax: Int
    let attemptsMax: Int

    /// `isWanted` tells whether the answer is worth having with nobody waiting for it.
    init(isWanted: Bool, waitersMax: Int, attemptsMax: Int) {
        precondition(waitersMax > 0 && attemptsMax > 0)
        self.isWanted = isWanted
        self.waitersMax = waitersMax
        self.attemptsMax = attemptsMax
    }

    /// Whether no head has arrived yet.
    var isUnanswered: Bool { state == .fetching }
    /// Whether whoever asks from now on must look elsewhere.
    var isOver: Bool { state == .landed }
    var waiterCount: Int { line.count }
    var waiters: [WaiterID] { line.everyone.map(\.ticket) }

    enum JoinAction: Hashable {
        /// Wait under this name until told.
        case wait(WaiterID)
        /// The answer is there.
        case readAnswer
        /// Look again: what was fetched is stored by now, or will not come.
        case lookAgain
        /// So many wait already that one more would grow memory without bound.
        case refuse
    }

    mutating func join(as role: Role = .follower) -> JoinAction {
        defer { checkInvariants() }
        switch state {
        case .landed: return .lookAgain
        case .answered: return .readAnswer
        case .fetching:
            guard line.count < waitersMax else { return .refuse }
            let waiter = line.enter(())
            if role == .leader { leader = waiter }
            return .wait(waiter)
        }
    }

    /// Whose request it is that is sent.
    enum Role: Hashable, Sendable {
        case leader
        case follower
    }

    enum LeaveAction: Hashable {
        /// Tell it that it is out.
        case resume
        /// The same, and end the fetch: nobody is left who wants it.
        case resumeAndEndFetch
        /// It was told already.
        case nothing
    }

    /// A waiter gives up; its place is free at once.
    mutating func leave(_ waiter: WaiterID) -> LeaveAction {
        defer { checkInvariants() }
        guard line.leave(waiter) != nil else { return .nothing }
        if leader == waiter { leader = nil }
        guard line.isEmpty, !isWanted else { return .resume }
        state = .landed
        return .resumeAndEndFetch
    }

    /// The answer's head is there; everyone who waited is to be told, once.
    mutating func answered(for audience: FlightAudience) -> [WaiterID] {
        precondition(state == .fetching, "A flight is answered once")
        defer { checkInvariants() }
        state = audience == .everyone ? .answered : .landed
        return release()
    }

    enum FailAction: Hashable {
        /// This waiter's request is the next attempt; it goes on waiting.
        case elect(WaiterID)
        /// All of these get the error; nobody tries again.
        case giveUp([WaiterID])
    }

    /// The attempt failed before any head: the first who waits takes over, while attempts last.
    ///
    /// The leader is out of the line by then: the failure is its own request's answer.
    mutating func failed() -> FailAction {
        precondition(state == .fetching && leader == nil, "A flight fails before it is answered")
        defer { checkInvariants() }
        if attempts < attemptsMax, let next = line.first {
            attempts += 1
            leader = next.ticket
            return .elect(next.ticket)
        }
        state = .landed
        return .giveUp(release())
    }

    /// Takes the leader out of the line, to be told of its own request's failure.
    mutating func dismissLeader() -> WaiterID? {
        defer { checkInvariants() }
        guard let waiter = leader.take() else { return nil }
        _ = line.leave(waiter)
        return waiter
    }

    /// Nothing more will come: whoever asks from now on looks again.
    mutating func landed() -> [WaiterID] {
        defer { checkInvariants() }
        state = .landed
        return release()
    }

    private mutating func release() -> [WaiterID] {
        leader = nil
        return line.removeAll().map(\.ticket)
    }

    func checkInvariants() {
        #if ENGINE_CHECKS
            precondition(state == .fetching || line.isEmpty)
            precondition((1...attemptsMax).contains(attempts))
            precondition(leader == nil || !line.isEmpty)
            line.checkInvariants()
        #endif
    }
}
