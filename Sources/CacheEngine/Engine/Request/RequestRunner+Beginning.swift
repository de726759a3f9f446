/// Requests that begin outside a task, on the event loop of a server.
///
/// A request that leads the flight of its key, or may share none, needs no task to wait for the
/// outcome: the flight calls it. Every other one waits in a task of its own, followers above all:
/// one thread would call ten thousand of them, one after the other.
extension RequestRunner {
    /// Begins the request; any thread calls `completion` once, outside all locks.
    func begin(_ answer: PendingAnswer, _ completion: @escaping PendingAnswer.Completion) throws {
        let ticket = services.tiers.ledger.ticket()
        guard isCacheable, request.options.timeout == nil,
            let step = try stepWithoutLookup(ticket)
        else { return goOn(with: .look, answer, completion) }
        guard case .board(let context) = step else { return goOn(with: step, answer, completion) }
        board(context, answer, completion)
    }

    private func board(
        _ context: FetchContext,
        _ answer: PendingAnswer,
        _ completion: @escaping PendingAnswer.Completion
    ) {
        let now = asked.startedNanoseconds
        let boarded = boarding.board(context, nowNanoseconds: now)
        guard case .outcome(.goAlone(let reason)) = boarded else {
            return wait(for: boarded, context, isAlone: false, answer, completion)
        }
        note(reason)
        let alone = boarding.boardAlone(context, nowNanoseconds: now)
        wait(for: alone, context, isAlone: true, answer, completion)
    }

    private func wait(
        for boarded: FlightBoarding,
        _ context: FetchContext,
        isAlone: Bool,
        _ answer: PendingAnswer,
        _ completion: @escaping PendingAnswer.Completion
    ) {
        guard case .leading(let flight, .waiting(let waiter)) = boarded else {
            let step = Step.aboard(context, boarded, isAlone: isAlone)
            return goOn(with: step, answer, completion)
        }
        answer.attach(flight, waiter)
        flight.whenKnown(waiter) { outcome in
            answer.detach()
            // Only a response is final. Other outcomes depend on the cancellation of the request's own
            // task, and the thread that calls may be in another one.
            guard case .answered(let answered, isAsker: true) = outcome else {
                let step = Step.aboard(context, .outcome(outcome), isAlone: isAlone)
                return goOn(with: step, answer, completion)
            }
            if let response = builder.response(answered, to: context, isAsker: true) {
                let refresh = refreshOfWhole(after: response, context)
                return end(with: response, refresh, completion)
            }
            do {
                let step = stepWithoutResponse(answered, context, isAsker: true)
                goOn(with: isAlone ? try Self.last(step) : step, answer, completion)
            } catch { completion(.failure(error)) }
        }
    }

    private func end(
        with response: consuming CacheResponse,
        _ refresh: FetchContext?,
        _ completion: PendingAnswer.Completion
    ) {
        respond(response, refresh)
        completion(.success(consume response))
    }

    /// Ends the request, or takes the further steps in a task.
    private func goOn(
        with step: Step,
        _ answer: PendingAnswer,
        _ completion: @escaping PendingAnswer.Completion
    ) {
        if case .respond(let response, let refresh) = step {
            return end(with: response, refresh, completion)
        }
        let executor = request.options.taskExecutor ?? services.configuration.taskExecutor
        answer.startTask(on: executor, completion) { [self] in try await response(from: step) }
    }
}
