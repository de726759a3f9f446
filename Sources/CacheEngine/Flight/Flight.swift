import Synchronization

/// One origin fetch, and everyone who waits for it.
///
/// The machine decides under the lock; continuations are resumed outside it, so waking ten thousand
/// waiters holds nobody up.
///
/// Invariants:
/// 1. Everyone in the machine's line has a seat, under the same ticket, and leaves it by being told.
/// 2. `told` holds those who were told before they suspended.
final class Flight<Request: Sendable, Answer: Sendable>: Sendable {
    typealias Outcome = FlightOutcome<Answer>
    typealias WaiterID = FlightStateMachine.WaiterID

    private struct Seat {
        let request: Request
        let sinceNanoseconds: UInt64
        /// Nil until its holder suspends.
        var continuation: UnsafeContinuation<Outcome, Never>?
    }

    private struct State {
        var machine: FlightStateMachine
        var seats = WaitingLine<Seat>()
        var told: [WaiterID: Outcome] = [:]
        var answer: Answer?
        var licence = FlightLicence()
        /// No attempt of it stores anything any more.
        var isRetired = false
        var task: Task<Void, Never>?
        /// A second key, known once the answer has told how it varies.
        var variantKey: KeyHash?
    }

    let key: KeyHash
    /// The request it was started for; nobody joins who may not have an answer of that age.
    let founder: Request
    /// When it began, on the monotonic clock.
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

    var waiterCount: Int { state.withLock { $0.machine.waiterCount } }
    var isUnanswered: Bool { state.withLock { $0.machine.isUnanswered } }
    /// Whether nobody can join any more.
    var isOver: Bool { state.withLock { $0.machine.isOver } }

    /// The key of the variant that is being fetched, where it is not the flight's own.
    var variantKey: KeyHash? {
        get { state.withLock { $0.variantKey } }
        set { state.withLock { $0.variantKey = newValue } }
    }

    // MARK: For those who wait

    /// A place in the flight, to be given to `outcome(of:)`.
    enum Place {
        case waiting(WaiterID)
        case known(Outcome)
    }

    func join(
        _ request: Request,
        as role: FlightStateMachine.Role = .follower,
        nowNanoseconds: UInt64
    ) -> Place {
        state.withLock { state in
            switch state.machine.join(as: role) {
            case .wait(let waiter):
                let seat = Seat(request: request, sinceNanoseconds: nowNanoseconds)
                let ticket = state.seats.enter(seat)
                precondition(ticket == waiter, "Seats are given out in the order of the line")
                return .waiting(waiter)
            case .readAnswer:
                guard let answer = state.answer else { return .known(.lookAgain) }
                return .known(.answered(answer, isLeader: false))
            case .lookAgain: return .known(.lookAgain)
            case .refuse: return .known(.goAlone(.crowded))
            }
        }
    }

    /// Suspends until the flight has something to say to this waiter; to be called once.
    nonisolated(nonsending) func outcome(of waiter: WaiterID) async -> Outcome {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let early = state.withLock { state -> Outcome? in
                    if let early = state.told.removeValue(forKey: waiter) { return early }
                    let isSeated = state.seats.update(waiter) { $0.continuation = continuation }
                    return isSeated ? nil : .lookAgain
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            leave(waiter, with: .failed(CancellationError(), isShared: false))
        }
    }

    /// Takes a waiter out, with an outcome of its own.
    ///
    /// - Returns: Whether it was still waiting.
    @discardableResult
    func leave(_ waiter: WaiterID, with outcome: Outcome) -> Bool {
        let action = state.withLock { $0.machine.leave(waiter) }
        guard action != .nothing else { return false }
        tell([waiter]) { _ in outcome }
        if action == .resumeAndEndFetch { cancel() }
        return true
    }

    // MARK: For the leader

    /// The leading task, so that a fetch nobody wants can be ended.
    func attach(_ task: Task<Void, Never>) {
        let isOver = state.withLock { state in
            state.task = task
            return state.machine.isOver
        }
        if isOver { task.cancel() }
    }

    private func cancel() { state.withLock { $0.task }?.cancel() }

    /// Which attempt is under way.
    ///
    /// A leader of an earlier one has been given up.
    var attempt: Int { state.withLock { $0.machine.attempts } }

    /// What the attempt under way may store with.
    var licence: FlightLicence { state.withLock { $0.licence } }

    /// The head is there: tells everyone, in one go.
    ///
    /// - Returns: False when the attempt had been given up; nobody is told then.
    func answer(_ answer: Answer, for audience: FlightAudience, attempt: Int) -> Bool {
        let told = state.withLock { state -> (waiters: [WaiterID], leader: WaiterID?)? in
            guard state.machine.isUnanswered, state.machine.attempts == attempt else { return nil }
            if audience == .everyone { state.answer = answer }
            let leader = state.machine.leader
            return (state.machine.answered(for: audience), leader)
        }
        guard let told else { return false }
        tell(told.waiters) { waiter in
            if waiter == told.leader { return .answered(answer, isLeader: true) }
            return audience == .leader ? .goAlone(.unshareable) : .answered(answer, isLeader: false)
        }
        return true
    }

    /// What follows from a failed attempt.
    enum Failure {
        /// This request is sent next.
        case elected(Request, attempt: Int)
        /// Everyone has been told; nobody tries again.
        case over
        /// The attempt had been given up before.
        case superseded
    }

    /// The attempt failed before any head.
    func fail(_ error: any Error, attempt: Int) -> Failure {
        let result = state.withLock { state -> (leader: WaiterID?, next: Failure, [WaiterID])? in
            guard state.machine.isUnanswered, state.machine.attempts == attempt else { return nil }
            state.licence.revoke()
            let leader = state.machine.dismissLeader()
            switch state.machine.failed() {
            case .giveUp(let waiters): return (leader, .over, waiters)
            case .elect(let next):
                guard let request = state.seats[next]?.request else {
                    preconditionFailure("Who is in the line has a seat")
                }
                state.licence = FlightLicence()
                if state.isRetired { state.licence.revoke() }
                return (leader, .elected(request, attempt: attempt + 1), [])
            }
        }
        guard let (leader, failure, waiters) = result else { return .superseded }
        // The failed request's own caller has its answer: the error.
        if let leader { tell([leader]) { _ in .failed(error, isShared: false) } }
        tell(waiters) { _ in .failed(error, isShared: true) }
        return failure
    }

    /// Those who have waited since before `nanoseconds`, the leader's own caller apart.
    func waiters(since nanoseconds: UInt64) -> [WaiterID] {
        state.withLock { state in
            state.seats.everyone
                .filter { ticket, seat in
                    ticket != state.machine.leader && seat.sinceNanoseconds <= nanoseconds
                }
                .map(\.ticket)
        }
    }

    /// Nobody joins any more; whoever still waits looks again.
    func land() {
        let waiters = state.withLock { state in
            state.answer = nil
            return state.machine.landed()
        }
        tell(waiters) { _ in .lookAgain }
    }

    /// A newer flight takes the key: what this one brings goes to those who asked before, and is
    /// stored by nobody.
    func retire() {
        state.withLock { state in
            state.isRetired = true
            state.licence.revoke()
        }
    }

    /// It has taken too long: the fetch is ended, and whoever waits looks again.
    func giveUp() {
        retire()
        land()
        cancel()
    }

    /// Ends the flight, and tells whoever waits why.
    func abort(_ error: any Error) {
        let waiters = state.withLock { state in
            state.licence.revoke()
            state.answer = nil
            return state.machine.landed()
        }
        cancel()
        tell(waiters) { _ in .failed(error, isShared: false) }
    }

    private func tell(_ waiters: [WaiterID], _ outcome: (WaiterID) -> Outcome) {
        guard !waiters.isEmpty else { return }
        var ready: [(WaiterID, UnsafeContinuation<Outcome, Never>)] = []
        ready.reserveCapacity(waiters.count)
        state.withLock { state in
            func tell(_ waiter: WaiterID, _ continuation: UnsafeContinuation<Outcome, Never>?) {
                if let continuation {
                    ready.append((waiter, continuation))
                } else {
                    state.told[waiter] = outcome(waiter)
                }
            }
            if waiters.count == state.seats.count {
                state.seats.removeAll { tell($0, $1.continuation) }
            } else {
                for waiter in waiters {
                    if let seat = state.seats.leave(waiter) { tell(waiter, seat.continuation) }
                }
            }
        }
        for (waiter, continuation) in ready { continuation.resume(returning: outcome(waiter)) }
    }
}
