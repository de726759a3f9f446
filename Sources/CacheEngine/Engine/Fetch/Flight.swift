import HTTPCaching
import Synchronization

/// One origin fetch and all requests that wait for it.
///
/// The machine decides under the lock. Continuations are resumed outside it, so that waking ten
/// thousand waiters does not block other callers.
///
/// Invariant: `told` holds the outcomes of waiters that left the machine's line before they waited.
final class Flight: Sendable {
    typealias Outcome = FlightOutcome
    typealias WaiterID = WaitingLine<Void>.Ticket

    /// The conditions of a request.
    struct Terms {
        /// Whether the request may be sent on behalf of the others: its response would suit them.
        var mayLead = true
        /// The place of the newest head when the request boarded; 0 for a founder, whose flight has
        /// no head yet.
        var newestHead: UInt64 = 0
    }

    private struct Seat {
        let request: FetchContext
        let terms: Terms
        let sinceNanoseconds: UInt64
        /// `nil` until the waiter waits.
        var bell: OutcomeBell?

        /// Whether the request boarded after the head with the place `order`.
        func isLate(for order: UInt64) -> Bool {
            terms.newestHead >= order && !Mutant.answersLateWaiters.isOn
        }
    }

    private struct State {
        var machine: FlightStateMachine<Seat>
        var told: [WaiterID: Outcome] = [:]
        var answer: FlightAnswer?
        /// The first waiter that boarded after a tag was removed; so did all that followed it.
        var firstBehindRemovedTags: WaiterID?
        /// The response that is stored as its body arrives.
        var arriving: ArrivalMark?
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

        /// The next request to send: the first that may lead and is unlike the failed one.
        ///
        /// If all are alike, it is the first that may lead.
        func successor(_ nowNanoseconds: UInt64, _ isUnlike: (FetchContext) -> Bool) -> WaiterID? {
            var first: WaiterID?
            var compared = 0
            for (waiter, seat) in machine.line.everyone
            where seat.terms.mayLead && seat.request.untilNanoseconds > nowNanoseconds {
                if isUnlike(seat.request) { return waiter }
                first = first ?? waiter
                compared += 1
                if compared == successorsComparedMax { break }
            }
            return first
        }

        /// Keeps the outcome of a waiter that has left the line, if it does not wait yet.
        mutating func keep(_ outcome: @autoclosure () -> Outcome, _ waiter: WaiterID, _ seat: Seat)
        {
            assert(told[waiter] == nil, "a waiter is told once")
            if seat.bell == nil { told[waiter] = outcome() }
        }

        /// Keeps the outcomes of released waiters that do not wait yet.
        mutating func keep(_ waiters: Waiters, _ outcome: (WaiterID, Seat) -> Outcome) {
            waiters.forEach { keep(outcome($0, $1), $0, $1) }
        }
    }

    private typealias Waiters = WaitingLine<Seat>

    let key: KeyHash
    /// The request that started the flight.
    ///
    /// A request must not join if it needs a response newer than that request.
    let founder: FetchContext
    /// When the flight started, on the monotonic clock.
    let startedNanoseconds: UInt64
    private let state: Mutex<State>

    /// `isWanted` means that the response is wanted even without waiters.
    init(
        key: KeyHash,
        founder: FetchContext,
        isWanted: Bool,
        waitersMax: Int,
        attemptsMax: Int,
        startedNanoseconds: UInt64
    ) {
        self.key = key
        self.founder = founder
        self.startedNanoseconds = startedNanoseconds
        let machine = FlightStateMachine<Seat>(
            isWanted: isWanted,
            waitersMax: waitersMax,
            attemptsMax: attemptsMax
        )
        state = Mutex(State(machine: machine))
    }

    var isUnanswered: Bool { state.withLock { $0.machine.isUnanswered } }
    /// Whether no request can join any more.
    var isOver: Bool { state.withLock { $0.machine.isOver } }
    /// Whether the response is stored as its body arrives, though no request may join any more.
    var isBeingStored: Bool {
        state.withLock { $0.arriving?.isOutdated == false && $0.permit.isValid }
    }
    /// The answer for requests that join after the head.
    var sharedAnswer: FlightAnswer? { state.withLock { $0.answer } }

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
        _ request: FetchContext,
        as role: FlightRole = .follower,
        _ terms: Terms = Terms(),
        isBehindRemovedTags: Bool = false,
        nowNanoseconds: UInt64
    ) -> Place {
        state.withLock { state in
            let seat = Seat(request: request, terms: terms, sinceNanoseconds: nowNanoseconds)
            switch state.machine.join(seat, as: role) {
            case .wait(let waiter):
                if isBehindRemovedTags, state.firstBehindRemovedTags == nil {
                    state.firstBehindRemovedTags = waiter
                }
                if role == .asker { state.untilNanoseconds = request.untilNanoseconds }
                return .waiting(waiter)
            case .readAnswer:
                assert(state.answer != nil, "a flight that is answered for all has its answer")
                // The tags of an answer that has come since the desk looked are not compared yet.
                guard let answer = state.answer, !isBehindRemovedTags else {
                    return .known(.lookAgain)
                }
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
    private func hang(_ bell: OutcomeBell, for waiter: WaiterID) {
        let early = state.withLock { state -> Outcome? in
            if !state.told.isEmpty, let early = state.told.removeValue(forKey: waiter) {
                return early
            }
            let isSeated = state.machine.update(waiter) { seat in
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
        let (action, bell) = state.withLock { state in
            let seat = state.machine.line[waiter]
            if let seat { state.keep(outcome, waiter, seat) }
            return (state.machine.leave(waiter), seat?.bell)
        }
        guard action != .nothing else { return false }
        bell?.ring(outcome)
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

    /// The leading work, if it is known.
    var work: LeadingWork? { state.withLock { $0.work } }

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

    /// Tells all waiters at once that the head with the place `order` has arrived.
    ///
    /// The response may be stored, and be used for others, before they are told. A request that
    /// boards meanwhile came after the head: it looks again, and judges the response as any later
    /// request does. So does one that boarded after a tag was removed, if the response carries it
    /// (`hasRemovedTag`, called under the lock: nobody boards any more).
    ///
    /// - Returns: The number of waiters that got the answer; `nil`, without telling any waiter, if
    ///   the attempt had been given up.
    func answer(
        _ answer: FlightAnswer,
        for audience: FlightAudience,
        order: UInt64,
        attempt: Int,
        isBeingStored: Bool = false,
        hasRemovedTag: () -> Bool = { false }
    ) -> Int? {
        var firstBehind = WaiterID.max
        func isTooOld(for waiter: WaiterID, _ seat: Seat) -> Bool {
            seat.isLate(for: order) || waiter >= firstBehind
        }
        func outcome(_ waiter: WaiterID, _ seat: Seat, _ asker: WaiterID?) -> Outcome {
            if waiter == asker { return .answered(answer, isAsker: true) }
            if Mutant.sharesUnshareable.isOn { return .answered(answer, isAsker: false) }
            switch audience {
            case .everyone, .waiting:
                return isTooOld(for: waiter, seat) ? .lookAgain : .answered(answer, isAsker: false)
            case .askerWithCookie where !seat.request.facts.flags.contains(.hasCookie):
                return .lookAgain
            case .asker, .askerWithCookie: return .goAlone(.unshareable)
            }
        }
        var lateCount = 0
        let told = state.withLock { state -> (waiters: Waiters, asker: WaiterID?)? in
            guard state.machine.isUnanswered, state.machine.attempts == attempt else { return nil }
            if audience == .everyone { state.answer = answer }
            state.arriving = isBeingStored ? answer.arrival : nil
            let asker = state.machine.asker
            let waiters = state.machine.answered(for: audience)
            if let first = state.firstBehindRemovedTags, hasRemovedTag(),
                !Mutant.sharesRemovedTags.isOn
            {
                firstBehind = first
            }
            waiters.forEach { waiter, seat in
                if waiter != asker, isTooOld(for: waiter, seat) { lateCount += 1 }
                state.keep(outcome(waiter, seat, asker), waiter, seat)
            }
            return (waiters, asker)
        }
        guard let (waiters, asker) = told else { return nil }
        let isForAll = audience == .everyone || audience == .waiting
        let toldCount = isForAll ? waiters.count - lateCount : (asker == nil ? 0 : 1)
        ring(waiters) { waiter, seat in outcome(waiter, seat, asker) }
        return toldCount
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
        isUnlike: (FetchContext) -> Bool = { _ in true }
    ) -> Failure {
        let result = state.withLock { state -> Failing? in
            guard state.machine.isUnanswered, state.machine.attempts == attempt else { return nil }
            if !Mutant.permitsLateLeaders.isOn { state.permit.revoke() }
            // The caller of the failed request gets the error as its answer.
            let asker = state.machine.dismissAsker()
            if let asker {
                state.keep(.failed(error, isShared: false), asker.waiter, asker.seat)
            }
            var result = Failing(error: error, asker: asker?.seat.bell)
            result.isExhausted = !state.machine.hasAttemptsLeft
            let next = state.successor(nowNanoseconds, isUnlike)
            switch state.machine.failed(electing: next) {
            case .giveUp(let waiters):
                state.keep(waiters, result.outcome)
                result.waiters = waiters
            case .elect(let next):
                guard let seat = state.machine.line[next] else {
                    preconditionFailure("An elected waiter is in the line")
                }
                state.permit = StorePermit()
                state.untilNanoseconds = seat.request.untilNanoseconds
                if state.isRetired { state.permit.revoke() }
                assert(state.machine.attempts == attempt + 1, "attempts are counted one by one")
                result.next = .elected(seat.request, attempt: attempt + 1)
            }
            return result
        }
        guard let result else { return .superseded }
        result.asker?.ring(.failed(error, isShared: false))
        ring(result.waiters, result.outcome)
        return result.next
    }

    /// The waiters to tell after a failure, and the next step.
    private struct Failing {
        let error: any Error
        let asker: OutcomeBell?
        var next = Failure.over
        var waiters = Waiters()
        var isExhausted = false

        func outcome(_: WaiterID, _ seat: Seat) -> Outcome {
            // A waiter that could not lead although attempts were left has not been tried.
            if !isExhausted, !seat.terms.mayLead { return .goAlone(.unshareable) }
            return .failed(error, isShared: true)
        }
    }

    /// The waiters since `nanoseconds` or earlier, without the asker.
    func waiters(since nanoseconds: UInt64) -> [WaiterID] {
        waiters { $0.sinceNanoseconds <= nanoseconds }
    }

    /// The waiters whose own time has ended, without the asker, and the time that each had for a head.
    func waiters(past nanoseconds: UInt64) -> [(waiter: WaiterID, headNanoseconds: UInt64)] {
        state.withLock { state in
            state.machine.line.everyone
                .filter {
                    $0.ticket != state.machine.asker
                        && $0.element.request.untilNanoseconds <= nanoseconds
                }
                .map { ($0.ticket, $0.element.request.asked.headNanoseconds) }
        }
    }

    private func waiters(where isMeant: (Seat) -> Bool) -> [WaiterID] {
        state.withLock { state in
            state.machine.line.everyone
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
            let waiters = state.machine.close()
            state.keep(waiters) { _, _ in .lookAgain }
            return waiters
        }
        ring(waiters) { _, _ in .lookAgain }
    }

    /// Gives up the key to a newer flight.
    ///
    /// The response goes only to requests that joined before, and it is not stored, also if its head
    /// has come: the newer flight looked before, and would not find what its response ends.
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
            let waiters = state.machine.close()
            state.keep(waiters) { _, _ in .failed(error, isShared: false) }
            return waiters
        }
        cancel()
        ring(waiters) { _, _ in .failed(error, isShared: false) }
    }

    /// Tells released waiters that wait; called outside the lock.
    private func ring(_ waiters: consuming Waiters, _ outcome: (WaiterID, Seat) -> Outcome) {
        waiters.drain { waiter, seat in seat.bell?.ring(outcome(waiter, seat)) }
    }
}

/// The most waiters that are compared with the failed request; if all are alike, one is taken.
private let successorsComparedMax = 1_024
