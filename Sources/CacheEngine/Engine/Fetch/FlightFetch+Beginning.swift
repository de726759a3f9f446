/// The beginning of attempts: outside a task on the event loop of a server, and else in one.
///
/// The origin calls with its response. If it has arrived whole and is judged without a wait, which is
/// so for most responses, the flight ends in that call; everything else goes on in a task.
extension FlightFetch {
    /// Makes an attempt, and those that follow if it fails: without a task as far as possible.
    func startLeader(_ context: FetchContext, attempt: Int) {
        if !beginAttempt(context, attempt) { startTask(context, attempt: attempt) }
    }

    /// Starts a task that makes an attempt, and those that follow if it fails.
    private func startTask(_ context: FetchContext, attempt: Int) {
        start { [self] in leaderEnded(await lead(context, attempt: attempt)) }
    }

    /// Starts a task that leads the flight.
    private func start(_ lead: @escaping @Sendable () async -> Void) {
        attach(.task(services.supervisor.start(on: executor, lead)))
    }

    private func attach(_ leader: LeadingWork) {
        flight.attach(leader)
        progress.attach(leader: leader)
    }

    /// Ends the flight after the last attempt of its leader.
    private func leaderEnded(_ attempt: Int) {
        // Another leader may have taken over the flight: it then owns the flight, even if new
        // requests can no longer join while its body still arrives.
        guard flight.attempt == attempt else { return }
        end()
    }

    /// Sends the request; returns `false` if that needs a task.
    private func beginAttempt(_ context: FetchContext, _ attempt: Int) -> Bool {
        guard let origin = services.loopOrigin, origin.isOnLoop, !services.tiers.hasOutlet,
            services.supervisor.isOpen
        else { return false }
        let fetch = fetchAttempt(context)
        let question = fetch.question()
        let exchange = services.supervisor.startExchange { number in
            fetch.begin(question, at: origin) { [self] begun in
                arrived(begun, to: question, fetch, attempt)
                services.supervisor.end(number)
            }
        }
        guard let exchange else { return false }
        attach(.exchange(exchange))
        return true
    }

    private func arrived(
        _ begun: consuming BegunAnswer,
        to question: FetchQuestion,
        _ fetch: FetchAttempt,
        _ attempt: Int
    ) {
        switch consume begun {
        case .unsent: startTask(fetch.context, attempt: attempt)
        case .failure(let error):
            switch giveUp(fetch.context, error, attempt: attempt) {
            case .elected(let next, let nextAttempt): startLeader(next, attempt: nextAttempt)
            case .over, .superseded: leaderEnded(attempt)
            }
        case .answer(let answer):
            let remainder = takeHead(of: answer, to: question, fetch, attempt: attempt)
            if case .done = remainder { return leaderEnded(attempt) }
            start { [self] in
                leaderEnded(await leadOn(remainder, of: answer, to: question, fetch, attempt))
            }
        }
    }

    /// Does the work that taking the head left, and makes the attempts that follow if it fails.
    ///
    /// - Returns: The last attempt.
    nonisolated(nonsending) private func leadOn(
        _ remainder: Remainder,
        of answer: OriginAnswer,
        to question: FetchQuestion,
        _ fetch: FetchAttempt,
        _ attempt: Int
    ) async -> Int {
        do {
            _ = try await finish(remainder, of: answer, to: question, fetch, attempt, nil)
            return attempt
        } catch {
            let failure = giveUp(fetch.context, error, attempt: attempt)
            guard case .elected(let next, let nextAttempt) = failure else { return attempt }
            return await lead(next, attempt: nextAttempt)
        }
    }
}
