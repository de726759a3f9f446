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
        flight.attach(.task(services.supervisor.start(on: executor, lead)))
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
        guard let origin = services.loopOrigin, origin.isOnLoop, !services.tiers.hasOutlet else {
            return false
        }
        let fetch = fetchAttempt(context, number: attempt)
        let exchange = services.supervisor.startExchange { number in
            fetch.begin(at: origin) { [self] begun in
                arrived(begun, fetch)
                services.supervisor.end(number)
            }
        }
        guard let exchange else { return false }
        flight.attach(.exchange(exchange))
        return true
    }

    private func arrived(_ begun: consuming BegunAnswer, _ fetch: FetchAttempt) {
        switch consume begun {
        case .unsent: startTask(fetch.context, attempt: fetch.number)
        case .failure(let error):
            switch giveUp(fetch.context, error, attempt: fetch.number) {
            case .elected(let next, let nextAttempt): startLeader(next, attempt: nextAttempt)
            case .over, .superseded: leaderEnded(fetch.number)
            }
        case .answer(let answer):
            let remainder = takeHead(of: answer, fetch)
            if case .done = remainder { return leaderEnded(fetch.number) }
            start { [self] in leaderEnded(await leadOn(remainder, of: answer, fetch)) }
        }
    }

    /// Does the work that taking the head left, and makes the attempts that follow if it fails.
    ///
    /// - Returns: The last attempt.
    nonisolated(nonsending) private func leadOn(
        _ remainder: Remainder,
        of answer: OriginAnswer,
        _ fetch: FetchAttempt
    ) async -> Int {
        do {
            _ = try await finish(remainder, of: answer, fetch, nil)
            return fetch.number
        } catch {
            let failure = giveUp(fetch.context, error, attempt: fetch.number)
            guard case .elected(let next, let nextAttempt) = failure else { return fetch.number }
            return await lead(next, attempt: nextAttempt)
        }
    }
}
