import Synchronization

/// One origin fetch, and everyone who waits for it.
///
/// The machine decides under the lock; continuations are resumed outside it, so waking ten thousand
/// waiters holds nobody up.
final class Flight<Request: Sendable, Answer: Sendable>: Sendable {
    typealias Outcome = FlightOutcome<Answer>
    typealias WaiterID = FlightStateMachine.WaiterID

    private struct Waiting {
        var request: Request
        var sinceNanoseconds: UInt64
        var continuation: UnsafeContinuation<Outcome, Never>?
        /// An outcome that came before the waiter suspended.
        var early: Outcome?
    }

    private struct State {
        var machine: FlightStateMachine
        var waiting: [WaiterID: Waiting] = [:]
        var answer: Answer?
        var leader: WaiterID?
        var task: Task<Void, Never>?
    }

    let key: KeyHash
    /// When it began, on the monotonic clock.
    let startedNanoseconds: UInt64
    private let state: Mutex<State>

    init(key: KeyHash, machine: FlightStateMachine, startedNanoseconds: UInt64) {
        self.key = key
        self.startedNanoseconds = startedNanoseconds
        state = Mutex(State(machine: machine))
    }

    var waiterCount: Int { state.withLock { $0.machine.waiters.count } }

    var isUnanswered: Bool { state.withLock { $0.machine.isUnanswered } }

    /// The leading task, so that an abandoned flight can be ended.
    func attach(_ task: Task<Void, Never>) { state.withLock { $0.task = task } }

    func cancel() { state.withLock { $0.task }?.cancel() }

    // MARK: For those who wait

    /// A place in the flight, to be given to `outcome(of:)`.
    enum Place {
        case waiting(WaiterID)
        case known(Outcome)
    }

    /// Joins; `isLeader` for the one whose request is sent first.
    func join(_ request: Request, nowNanoseconds: UInt64, isLeader: Bool = false) -> Place {
        state.withLock { state in
            switch state.machine.join() {
            case .wait(let waiter):
                state.waiting[waiter] = Waiting(
                    request: request,
                    sinceNanoseconds: nowNanoseconds
                )
                if isLeader { state.leader = waiter }
                return .waiting(waiter)
            case .readAnswer:
                guard let answer = state.answer else { return .known(.lookAgain) }
                return .known(.answered(answer, isLeader: false))
            case .lookAgain: return .known(.lookAgain)
            case .refuse: return .known(.goAlone(.crowded))
            }
        }
    }

    /// Suspends until the flight has something to say to this waiter.
    func outcome(of waiter: WaiterID) async -> Outcome {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let early = state.withLock { state -> Outcome? in
                    guard var waiting = state.waiting[waiter] else { return .lookAgain }
                    if let early = waiting.early {
                        state.waiting[waiter] = nil
                        return early
                    }
                    waiting.continuation = continuation
                    state.waiting[waiter] = waiting
                    return nil
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
        let (didLeave, isAbandoned) = state.withLock { state in
            (state.machine.leave(waiter) == .resume(waiter), state.machine.isAbandoned)
        }
        if didLeave { tell([waiter]) { _ in outcome } }
        if isAbandoned { cancel() }
        return didLeave
    }

    // MARK: For the leader

    /// Which attempt is under way.
    ///
    /// A leader of an earlier one has been given up.
    var attempt: Int { state.withLock { $0.machine.attempts } }

    /// The head is there: tells everyone, in one go.
    ///
    /// With `isShareable` false only the leader's own caller gets the answer.
    ///
    /// - Returns: False when the attempt had been given up; nobody is told then.
    func answer(_ answer: Answer, isShareable: Bool, attempt: Int) -> Bool {
        let told = state.withLock { state -> (waiters: [WaiterID], leader: WaiterID?)? in
            guard state.machine.isUnanswered, state.machine.attempts == attempt else { return nil }
            if isShareable { state.answer = answer }
            let waiters = isShareable ? state.machine.answered() : state.machine.landed()
            return (waiters, state.leader)
        }
        guard let told else { return false }
        tell(told.waiters) { waiter in
            if waiter == told.leader { return .answered(answer, isLeader: true) }
            return isShareable ? .answered(answer, isLeader: false) : .goAlone(.unshareable)
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
        let failed = state.withLock {
            state -> (leader: WaiterID?, action: FlightStateMachine.FailAction)? in
            guard state.machine.isUnanswered, state.machine.attempts == attempt else { return nil }
            let leader = state.leader
            // The failed request's own caller has its answer: the error.
            if let leader { _ = state.machine.leave(leader) }
            let action = state.machine.failed()
            if case .elect(let next) = action { state.leader = next }
            return (leader, action)
        }
        guard let failed else { return .superseded }
        if let leader = failed.leader { tell([leader]) { _ in .failed(error, isShared: false) } }
        switch failed.action {
        case .elect(let next):
            let request = state.withLock { $0.waiting[next]?.request }
            if let request { return .elected(request, attempt: attempt + 1) }
            // It left in between: the next one, or the end.
            return fail(error, attempt: attempt + 1)
        case .giveUp(let waiters):
            tell(waiters) { _ in .failed(error, isShared: true) }
            return .over
        }
    }

    /// Those who have waited since before `nanoseconds`, the leader's own caller apart.
    func waiters(since nanoseconds: UInt64) -> [WaiterID] {
        state.withLock { state in
            state.machine.waiters.filter { waiter in
                guard waiter != state.leader, let waiting = state.waiting[waiter] else {
                    return false
                }
                return waiting.sinceNanoseconds <= nanoseconds
            }
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

    private func tell(_ waiters: [WaiterID], _ outcome: (WaiterID) -> Outcome) {
        var ready: [(UnsafeContinuation<Outcome, Never>, Outcome)] = []
        ready.reserveCapacity(waiters.count)
        state.withLock { state in
            for waiter in waiters {
                guard var waiting = state.waiting[waiter] else { continue }
                if let continuation = waiting.continuation {
                    state.waiting[waiter] = nil
                    ready.append((continuation, outcome(waiter)))
                } else {
                    waiting.early = outcome(waiter)
                    state.waiting[waiter] = waiting
                }
            }
        }
        for (continuation, outcome) in ready { continuation.resume(returning: outcome) }
    }
}
