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
    func join(_ request: Request, isLeader: Bool = false) -> Place {
        state.withLock { state in
            switch state.machine.join() {
            case .wait(let waiter):
                state.waiting[waiter] = Waiting(request: request)
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

    /// The head is there: tells everyone, in one go.
    ///
    /// With `isShareable` false only the leader's own caller gets the answer.
    func answer(_ answer: Answer, isShareable: Bool) {
        let (waiters, leader) = state.withLock { state in
            if isShareable { state.answer = answer }
            let waiters = isShareable ? state.machine.answered() : state.machine.landed()
            return (waiters, state.leader)
        }
        tell(waiters) { waiter in
            if waiter == leader { return .answered(answer, isLeader: true) }
            return isShareable ? .answered(answer, isLeader: false) : .goAlone(.unshareable)
        }
    }

    /// The attempt failed; the request of the next leader, or nil when all have been told.
    func fail(_ error: any Error) -> Request? {
        let (failedLeader, action) = state.withLock { state in
            let failedLeader = state.leader
            // The failed request's own caller has its answer: the error.
            if let failedLeader { _ = state.machine.leave(failedLeader) }
            let action = state.machine.failed()
            if case .elect(let next) = action { state.leader = next }
            return (failedLeader, action)
        }
        if let failedLeader { tell([failedLeader]) { _ in .failed(error, isShared: false) } }
        switch action {
        case .elect(let next): return state.withLock { $0.waiting[next]?.request }
        case .giveUp(let waiters):
            tell(waiters) { _ in .failed(error, isShared: true) }
            return nil
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
