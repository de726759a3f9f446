import Synchronization

/// One origin fetch and all requests that wait for it.
///
/// The machine decides under the lock. Continuations are resumed outside it, so that waking ten
/// thousand waiters does not block other callers.
///
/// Invariants:
/// 1. Each waiter in the machine's line has a seat with the same ticket, until it is told its
///    outcome.
/// 2. `told` holds the outcomes of waiters that were told before they waited.
final class Flight<Request: Sendable, Answer: Sendable>: Sendable {
    typealias Outcome = FlightOutcome<Answer>
    typealias WaiterID = FlightStateMachine.WaiterID

    /// The conditions of a request.
    struct Terms {
        /// Whether the request may be sent on behalf of the others: its response would suit them.
        var mayLead = true
        /// When the request's own time for a head ends, on the monotonic clock.
        var untilNanoseconds = UInt64.max
    }

    private struct Seat {
        let request: Request
        let terms: Terms
        let sinceNanoseconds: UInt64
        /// `nil` until the waiter waits.
        var bell: OutcomeBell<Answer>?
    }

    private struct State {
        var machine: FlightStateMachine
        var seats = WaitingLine<Seat>()
        var told: [WaiterID: Outcome] = [:]
        var answer: Answer?
        var permit = StorePermit()
        /// When the time of the current attempt ends, whether its caller still waits or not.
        var untilNanoseconds = UInt64.max
        /// Whether no attempt of this flight may store anything any more.
        var isRetired = false
        /// The fetch of the current attempt.
        var work: LeadingWork?
        /// Whether the fetch was cancelled, perhaps before its work was known.
        var isCancelled = false
        /// A second key, known once the response states how it varies.
        var variantKey: KeyHash?

        func mayLead(_ waiter: WaiterID) -> Bool { seats[waiter]?.terms.mayLead ?? false }

        /// The next request to send: the first that may lead and is unlike the failed one.
        ///
        /// If all are alike, it is the first that may lead.
        func successor(_ nowNanoseconds: UInt64, _ isUnlike: (Request) -> Bool) -> WaiterID? {
            var first: WaiterID?
            var compared = 0
            for (waiter, seat) in seats.everyone
            where seat.terms.mayLead && seat.terms.untilNanoseconds > nowNanoseconds {
                // A waiter that has left may still have a seat.
                guard machine.isWaiting(waiter) else { continue }
                if isUnlike(seat.request) { return waiter }
                first = first ?? waiter
                compared += 1
                if compared == successorsComparedMax { break }
            }
            return first
        }
    }

    let key: KeyHash
    /// The request that started the flight.
    ///
    /// A request must not join if it needs a response newer than that request.
    let founder: Request
    /// When the flight started, on the monotonic clock.
    let startedNanoseconds: UInt64
    private let state: Mutex<State>

    init(
        key: KeyHash,
        founder: Request,
        machine: FlightStateMachine,
        startedNanoseconds: UInt64
    ) {
        self.key = key
        self.founder = founder
        self.startedNanoseconds = startedNanoseconds
        state = Mutex(State(machine: machine))
    }

    var isUnanswered: Bool { state.withLock { $0.machine.isUnanswered } }
    /// Whether no request can join any more.
    var isOver: Bool { state.withLock { $0.machine.isOver } }
    /// The answer for requests that join after the head.
    var sharedAnswer: Answer? { state.withLock { $0.answer } }

    /// The key of the variant that is being fetched, if it is not the flight's own.
    var variantKey: KeyHash? {
        get { state.withLock { $0.variantKey } }
        set { state.withLock { $0.variantKey = newValue } }
    }

    // MARK: For waiters

    /// A place in the flight, to be passed to `outcome(of:)`.
    enum Place {
        case waiting(WaiterID)
        case known(Outcome)
    }

    func join(
        _ request: Request,
        as role: FlightStateMachine.Role = .follower,
        _ terms: Terms = Terms(),
        nowNanoseconds: UInt64
    ) -> Place {
        state.withLock { state in
            switch state.machine.join(as: role) {
            case .wait(let waiter):
                let seat = Seat(request: request, terms: terms, sinceNanoseconds: nowNanoseconds)
                let ticket = state.seats.enter(seat)
                precondition(ticket == waiter, "Seats are given out in the order of the line")
                if role == .asker { state.untilNanoseconds = terms.untilNanoseconds }
                return .waiting(waiter)
            case .readAnswer:
                assert(state.answer != nil, "a flight that is answered for all has its answer")
                guard let answer = state.answer else { return .known(.lookAgain) }
                return .known(.answered(answer, isAsker: false))
            case .lookAgain: return .known(.lookAgain)
            case .refuse: return .known(.goAlone(.crowded))
            }
        }
    }

    /// Suspends until the flight has an outcome for this waiter; must be called once.
    nonisolated(nonsending) func outcome(of waiter: WaiterID) async -> Outcome {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                hang(.continuation(continuation), for: waiter)
            }
        } onCancel: {
            leave(waiter, with: .failed(CancellationError(), isShared: false))
        }
    }

    /// Calls `told` with the outcome for this waiter, once there is one; takes the place of
    /// `outcome(of:)`.
    ///
    /// The call comes from the thread that decides the outcome, outside all locks.
    func whenKnown(_ waiter: WaiterID, _ told: @escaping @Sendable (Outcome) -> Void) {
        hang(.call(told), for: waiter)
    }

    /// Lets `bell` ring when the outcome for the waiter is known, or now if it is known already.
    private func hang(_ bell: OutcomeBell<Answer>, for waiter: WaiterID) {
        let early = state.withLock { state -> Outcome? in
            if let early = state.told.removeValue(forKey: waiter) { return early }
            let isSeated = state.seats.update(waiter) { seat in
                assert(seat.bell == nil, "a waiter waits once")
                seat.bell = bell
            }
            return isSeated ? nil : .lookAgain
        }
        if let early { bell.ring(early) }
    }

    /// Removes a waiter and gives it this outcome.
    ///
    /// - Returns: Whether the waiter was still waiting.
    @discardableResult
    func leave(_ waiter: WaiterID, with outcome: Outcome) -> Bool {
        let action = state.withLock { $0.machine.leave(waiter) }
        guard action != .nothing else { return false }
        tell(waiter, outcome)
        if action == .resumeAndEndFetch { cancel() }
        return true
    }

    // MARK: For the leader

    /// Sets the leading work, so that a fetch without interested requests can be cancelled.
    func attach(_ work: LeadingWork) {
        // A flight that is over may still deliver the body of its answer.
        let isCancelled = state.withLock { state in
            state.work = work
            return state.isCancelled
        }
        if isCancelled { work.cancel() }
    }

    private func cancel() {
        let work = state.withLock { state in
            state.isCancelled = true
            return state.work
        }
        work?.cancel()
    }

    /// The number of the current attempt.
    ///
    /// The leader of an earlier attempt has been given up.
    var attempt: Int { state.withLock { $0.machine.attempts } }

    /// The permit with which the current attempt may store its response.
    var permit: StorePermit { state.withLock { $0.permit } }

    /// Whether the attempt may still answer: it has not been given up, and no head has arrived.
    func awaitsAnswer(of attempt: Int) -> Bool {
        state.withLock { $0.machine.isUnanswered && $0.machine.attempts == attempt }
    }

    /// Tells all waiters at once that the head has arrived.
    ///
    /// - Returns: The number of waiters that got the answer; `nil`, without telling any waiter, if
    ///   the attempt had been given up.
    func answer(_ answer: Answer, for audience: FlightAudience, attempt: Int) -> Int? {
        let told = state.withLock { state -> (waiters: [WaiterID], asker: WaiterID?)? in
            guard state.machine.isUnanswered, state.machine.attempts == attempt else { return nil }
            if audience == .everyone { state.answer = answer }
            let asker = state.machine.asker
            return (state.machine.answered(for: audience), asker)
        }
        guard let told else { return nil }
        assert(told.asker.map { told.waiters.contains($0) } ?? true, "the asker waits, too")
        tell(told.waiters) { waiter in
            if waiter == told.asker { return .answered(answer, isAsker: true) }
            if Mutant.sharesUnshareable.isOn { return .answered(answer, isAsker: false) }
            return audience == .asker ? .goAlone(.unshareable) : .answered(answer, isAsker: false)
        }
        guard audience == .asker else { return told.waiters.count }
        return told.asker == nil ? 0 : 1
    }

    /// Handles an attempt that failed before a head arrived.
    ///
    /// The next request may lead and has time left at `nowNanoseconds`. A request that `isUnlike`
    /// accepts is preferred, because a request like the failed one could provoke the same error
    /// again.
    func fail(
        _ error: any Error,
        attempt: Int,
        nowNanoseconds: UInt64 = 0,
        isUnlike: (Request) -> Bool = { _ in true }
    ) -> Failure {
        let result = state.withLock { state -> Failing? in
            guard state.machine.isUnanswered, state.machine.attempts == attempt else { return nil }
            if !Mutant.permitsLateLeaders.isOn { state.permit.revoke() }
            let asker = state.machine.dismissAsker()
            let next = state.successor(nowNanoseconds, isUnlike)
            let isExhausted = !state.machine.hasAttemptsLeft
            switch state.machine.failed(electing: next) {
            case .giveUp(let waiters):
                let alone = isExhausted ? [] : waiters.filter { !state.mayLead($0) }
                return Failing(asker: asker, next: .over, waiters: waiters, alone: Set(alone))
            case .elect(let next):
                guard let seat = state.seats[next] else {
                    preconditionFailure("Each waiter in the line has a seat")
                }
                state.permit = StorePermit()
                state.untilNanoseconds = seat.terms.untilNanoseconds
                if state.isRetired { state.permit.revoke() }
                assert(state.machine.attempts == attempt + 1, "attempts are counted one by one")
                return Failing(asker: asker, next: .elected(seat.request, attempt: attempt + 1))
            }
        }
        guard let result else { return .superseded }
        assert(result.asker.map { !result.waiters.contains($0) } ?? true, "it is told once")
        // The caller of the failed request gets the error as its answer.
        if let asker = result.asker { tell(asker, .failed(error, isShared: false)) }
        tell(result.waiters) { waiter in
            result.alone.contains(waiter)
                ? .goAlone(.unshareable) : .failed(error, isShared: true)
        }
        return result.next
    }

    /// The waiters to tell after a failure, and the next step.
    private struct Failing {
        var asker: WaiterID?
        var next: Failure
        var waiters: [WaiterID] = []
        /// The waiters that could not lead although attempts were left: they have not been tried.
        var alone: Set<WaiterID> = []
    }

    /// The waiters since `nanoseconds` or earlier, without the asker.
    func waiters(since nanoseconds: UInt64) -> [WaiterID] {
        waiters { $0.sinceNanoseconds <= nanoseconds }
    }

    /// The waiters whose own time has ended, without the asker.
    func waiters(past nanoseconds: UInt64) -> [WaiterID] {
        waiters { $0.terms.untilNanoseconds <= nanoseconds }
    }

    private func waiters(where isMeant: (Seat) -> Bool) -> [WaiterID] {
        state.withLock { state in
            state.seats.everyone
                .filter { $0.ticket != state.machine.asker && isMeant($0.element) }
                .map(\.ticket)
        }
    }

    /// When the time of the current attempt ends.
    var untilNanoseconds: UInt64 { state.withLock { $0.untilNanoseconds } }

    /// Ends the flight: no request joins any more, and the remaining waiters look again.
    func close() {
        let waiters = state.withLock { state in
            state.answer = nil
            return state.machine.close()
        }
        tell(waiters) { _ in .lookAgain }
    }

    /// Gives up the key to a newer flight.
    ///
    /// The response goes only to requests that joined before, and it is not stored.
    func retire() {
        state.withLock { state in
            state.isRetired = true
            state.permit.revoke()
        }
    }

    /// Ends a flight that took too long: cancels the fetch, and the waiters look again.
    func giveUp() {
        retire()
        close()
        cancel()
    }

    /// Isolates a request that hangs while others are answered.
    ///
    /// Its own caller stays with it; all other waiters look again.
    func isolate() {
        retire()
        for waiter in waiters(where: { _ in true }) { leave(waiter, with: .lookAgain) }
    }

    /// Ends the flight and tells its waiters the error.
    func abort(_ error: any Error) {
        let waiters = state.withLock { state in
            state.permit.revoke()
            state.answer = nil
            return state.machine.close()
        }
        cancel()
        tell(waiters) { _ in .failed(error, isShared: false) }
    }

    private func tell(_ waiter: WaiterID, _ outcome: Outcome) {
        let bell = state.withLock { state -> OutcomeBell<Answer>? in
            guard let seat = state.seats.leave(waiter) else { return nil }
            assert(state.told[waiter] == nil, "a waiter is told once")
            if seat.bell == nil { state.told[waiter] = outcome }
            return seat.bell
        }
        bell?.ring(outcome)
    }

    private func tell(_ waiters: [WaiterID], _ outcome: (WaiterID) -> Outcome) {
        guard waiters.count > 1 else {
            if let only = waiters.first { tell(only, outcome(only)) }
            return
        }
        var ready: [(WaiterID, OutcomeBell<Answer>)] = []
        ready.reserveCapacity(waiters.count)
        state.withLock { state in
            func tell(_ waiter: WaiterID, _ bell: OutcomeBell<Answer>?) {
                assert(state.told[waiter] == nil, "a waiter is told once")
                if let bell {
                    ready.append((waiter, bell))
                } else {
                    state.told[waiter] = outcome(waiter)
                }
            }
            if waiters.count == state.seats.count {
                state.seats.removeAll { tell($0, $1.bell) }
            } else {
                for waiter in waiters {
                    if let seat = state.seats.leave(waiter) { tell(waiter, seat.bell) }
                }
            }
        }
        for (waiter, bell) in ready { bell.ring(outcome(waiter)) }
    }
}

/// The most waiters that are compared with the failed request; if all are alike, one is taken.
private let successorsComparedMax = 1_024
