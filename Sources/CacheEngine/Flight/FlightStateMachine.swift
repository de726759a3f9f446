/// One origin fetch shared by every request that asked for the same key while it ran.
///
///     fetching ──answered──▶ answered ──landed──▶ landed
///      │    ▲
///    failed │ elected
///      ▼    │
///     re-electing ──nobody left, or attempts used up──▶ landed
///
/// A pure value: it never suspends, reads no clock and holds no task. `Flight` performs the actions
/// it returns.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. Waiters exist only while fetching.
/// 2. `attempts` is between 1 and `attemptsMax`.
struct FlightStateMachine {
    typealias WaiterID = Int

    private enum State {
        case fetching
        case answered
        case landed
    }

    private var state = State.fetching
    /// In the order they came; the first takes over when the leader fails.
    private(set) var waiters: [WaiterID] = []
    private(set) var attempts = 1
    private var isWanted: Bool
    private var nextWaiter = 0

    let waitersMax: Int
    let attemptsMax: Int

    /// `isWanted` tells whether the answer is worth having with nobody waiting for it.
    init(isWanted: Bool, waitersMax: Int, attemptsMax: Int) {
        precondition(waitersMax > 0 && attemptsMax > 0)
        self.isWanted = isWanted
        self.waitersMax = waitersMax
        self.attemptsMax = attemptsMax
    }

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

    mutating func join() -> JoinAction {
        defer { checkInvariants() }
        switch state {
        case .landed: return .lookAgain
        case .answered: return .readAnswer
        case .fetching:
            guard waiters.count < waitersMax else { return .refuse }
            nextWaiter += 1
            waiters.append(nextWaiter)
            return .wait(nextWaiter)
        }
    }

    enum LeaveAction: Hashable {
        case resume(WaiterID)
        /// It was told already.
        case nothing
    }

    /// A waiter gives up; its place is free at once.
    mutating func leave(_ waiter: WaiterID) -> LeaveAction {
        defer { checkInvariants() }
        guard let position = waiters.firstIndex(of: waiter) else { return .nothing }
        waiters.remove(at: position)
        return .resume(waiter)
    }

    /// Whether no head has arrived yet.
    var isUnanswered: Bool { state == .fetching }

    /// Whether nobody waits and nobody will miss the answer.
    var isAbandoned: Bool { state == .fetching && waiters.isEmpty && !isWanted }

    /// The answer's head is there; everyone who waited is to be told, once.
    mutating func answered() -> [WaiterID] {
        precondition(state == .fetching, "A flight is answered once")
        defer { checkInvariants() }
        state = .answered
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
    /// `leader` is the waiter whose request failed; the failure is that request's answer.
    mutating func failed() -> FailAction {
        precondition(state == .fetching, "A flight fails before it is answered")
        defer { checkInvariants() }
        if attempts < attemptsMax, let next = waiters.first {
            attempts += 1
            return .elect(next)
        }
        state = .landed
        return .giveUp(release())
    }

    /// Nothing more will come: whoever asks from now on looks again.
    mutating func landed() -> [WaiterID] {
        defer { checkInvariants() }
        state = .landed
        return release()
    }

    private mutating func release() -> [WaiterID] {
        let released = waiters
        waiters = []
        return released
    }

    func checkInvariants() {
        #if ENGINE_CHECKS
            precondition(state == .fetching || waiters.isEmpty)
            precondition((1...attemptsMax).contains(attempts))
            precondition(Set(waiters).count == waiters.count)
        #endif
    }
}
