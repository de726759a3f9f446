/// Requests that begin outside a task, on the event loop of a server.
///
/// A request that leads the flight of its key, or may share none, needs no task to wait for the
/// outcome: the flight calls it. Every other one waits in a task of its own, followers above all:
/// one thread would call ten thousand of them, one after the other.
extension RequestRunner {
    /// Begins the request; any thread calls `completion` once, outside all locks.
    func begin(_ answer: PendingAnswer, _ completion: @escaping PendingAnswer.Completion) throws {
        let ticket = services.tiers.ledger.ticket()
        guard isStorable, isCacheable, request.options.timeout == nil,
            let step = try stepWithoutLookup(ticket)
        else { return goOn(with: .look, answer, completion) }
        guard case .board(let context) = step else { return goOn(with: step, answer, completion) }
        var boarded = boarding.board(context)
        var isAlone = false
        if case .outcome(.goAlone(let reason)) = boarded {
            note(reason)
            boarded = boarding.boardAlone(context)
            isAlone = true
        }
        guard case .leading(let flight, .waiting(let waiter)) = boarded else {
            let step = Step.aboard(context, boarded, isAlone: isAlone)
            return goOn(with: step, answer, completion)
        }
        answer.attach(flight, waiter)
        flight.whenKnown(waiter) { [self, isAlone] outcome in
            answer.detach()
            do {
                let next = try self.step(after: outcome, context, isAlone: isAlone)
                goOn(with: next, answer, completion)
            } catch { completion(.failure(error)) }
        }
    }

    /// The step that follows an outcome, as far as no task is needed to find it.
    ///
    /// Only a response is final. Other outcomes depend on the cancellation of the request's own
    /// task, and the thread that calls may be in another one.
    private func step(
        after outcome: FlightOutcome<FlightAnswer>,
        _ context: FetchContext,
        isAlone: Bool
    ) throws -> Step {
        guard case .answered = outcome else {
            return .aboard(context, .outcome(outcome), isAlone: isAlone)
        }
        return isAlone ? try finishAlone(outcome, context) : try finish(outcome, context)
    }

    /// Ends the request, or takes the further steps in a task.
    private func goOn(
        with step: Step,
        _ answer: PendingAnswer,
        _ completion: @escaping PendingAnswer.Completion
    ) {
        if case .respond(let response, let refresh) = step {
            respond(response, refresh)
            return completion(.success(response))
        }
        let executor = request.options.taskExecutor ?? services.configuration.taskExecutor
        answer.startTask(on: executor, completion) { [self] in try await response(from: step) }
    }
}
