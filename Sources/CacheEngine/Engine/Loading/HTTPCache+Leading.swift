import HTTPCaching

/// The leading side of a flight: asks the origin, tells everyone, stores.
extension HTTPCache {
    static let shutDownError = CacheError(.shutDown, detail: "The cache has been shut down")

    /// Starts the task that leads `flight`, and the one that watches over it.
    func startLeading(
        _ flight: HTTPFlight,
        _ load: Load,
        desk: HTTPFlightDesk?
    ) -> Task<Void, Never> {
        recorder.counters.add(.flights)
        let watch = FlightWatch(load)
        let leader = startLeader(flight, load, attempt: 1, desk: desk, watch)
        let watcher = supervisor.start { [self] in await self.watch(flight, desk: desk, watch) }
        watch.attach(watcher: watcher)
        return leader
    }

    private func startLeader(
        _ flight: HTTPFlight,
        _ load: Load,
        attempt: Int,
        desk: HTTPFlightDesk?,
        _ watch: FlightWatch
    ) -> Task<Void, Never> {
        let leader = supervisor.start { [self] in
            guard await lead(flight, load, attempt: attempt, desk: desk, watch) else { return }
            await desk?.end(flight)
            flight.land()
            watch.end()
        }
        watch.begin(load, leader: leader)
        return leader
    }

    /// Asks until somebody's request is answered or nobody is left to try.
    ///
    /// - Returns: False when this leader was given up for another.
    private func lead(
        _ flight: HTTPFlight,
        _ load: Load,
        attempt: Int,
        desk: HTTPFlightDesk?,
        _ watch: FlightWatch
    ) async -> Bool {
        var load = load
        var attempt = attempt
        while true {
            do {
                let arrival = try await arrive(load)
                return await land(arrival, flight, load, attempt: attempt, desk: desk, watch)
            } catch {
                switch await giveUp(flight, load, error, attempt: attempt, desk) {
                case .superseded: return false
                case .over: return true
                case .elected(let next, let nextAttempt):
                    load = next
                    attempt = nextAttempt
                }
            }
        }
    }

    /// An attempt failed: who tries next, if anyone.
    private func giveUp(
        _ flight: HTTPFlight,
        _ load: Load,
        _ error: any Error,
        attempt: Int,
        _ desk: HTTPFlightDesk?
    ) async -> HTTPFlight.Failure {
        recorder.originFailed(error)
        let error = supervisor.isOpen ? error : Self.shutDownError
        if load.purpose == .refresh { await noteRefresh(load, desk, succeeded: false) }
        let failure = flight.fail(error, attempt: attempt)
        switch failure {
        case .superseded: break
        case .elected: recorder.counters.add(.reElections)
        case .over:
            guard !(error is CancellationError) else { break }
            recorder.counters.add(.sharedErrors)
            let now = clock.monotonicNanoseconds
            await desk?.noteFailure(of: flight, error, nowNanoseconds: now)
        }
        return failure
    }

    private func noteRefresh(_ load: Load, _ desk: HTTPFlightDesk?, succeeded: Bool) async {
        recorder.refreshed(succeeded: succeeded)
        await desk?.noteRefresh(
            load.selection.key.hash,
            succeeded: succeeded,
            nowNanoseconds: clock.monotonicNanoseconds
        )
    }

    /// The head has arrived: tells those who wait, then sees the body home.
    ///
    /// - Returns: False when this leader was given up for another.
    private func land(
        _ arrival: Arrival,
        _ flight: HTTPFlight,
        _ load: Load,
        attempt: Int,
        desk: HTTPFlightDesk?,
        _ watch: FlightWatch
    ) async -> Bool {
        if let desk, arrival.sharing != .failure {
            let isShareable = arrival.sharing == .everyone
            if !isShareable { recorder.counters.add(.hitForMissMarks) }
            await desk.noteShareable(
                isShareable,
                flight.key,
                nowNanoseconds: clock.monotonicNanoseconds
            )
        }
        guard
            flight.answer(
                arrival.answer,
                isShareable: arrival.sharing == .everyone,
                attempt: attempt
            )
        else { return false }
        if load.purpose == .refresh {
            await noteRefresh(load, desk, succeeded: arrival.sharing != .failure)
        }
        if let refusal = arrival.answer.refusal { recorder.refused(refusal) }
        if let delivery = arrival.delivery {
            watch.arriving(delivery.chain)
            await deliver(delivery, load, watch)
        }
        return true
    }

    // MARK: Watching

    /// Ends what takes too long: a head that does not come, a body that stands still, a wait for
    /// somebody else's answer.
    private func watch(_ flight: HTTPFlight, desk: HTTPFlightDesk?, _ watch: FlightWatch) async {
        let limits = configuration.originLimits
        let waitMax = configuration.flights.waitSecondsMax
        let tickSeconds = max(0.01, min(waitMax, limits.headSecondsMax, limits.idleSecondsMax) / 2)
        var seen = (attempt: 1, pieces: 0)
        var sinceNanoseconds = clock.monotonicNanoseconds
        while !watch.hasEnded {
            do {
                try await clock.sleep(nanoseconds: Self.nanoseconds(tickSeconds))
            } catch { return }
            let now = clock.monotonicNanoseconds
            await releaseLateWaiters(flight, desk, nowNanoseconds: now)
            let current = (attempt: flight.attempt, pieces: watch.pieceCount)
            if current != seen {
                seen = current
                sinceNanoseconds = now
            }
            let isUnanswered = flight.isUnanswered
            let limit = isUnanswered ? limits.headSecondsMax : limits.idleSecondsMax
            guard now - sinceNanoseconds >= Self.nanoseconds(limit) else { continue }
            let error = CacheError(
                .originTimedOut,
                detail: "The origin has sent nothing for \(limit) seconds"
            )
            watch.expire(error)
            let failure = await giveUp(flight, watch.load, error, attempt: seen.attempt, desk)
            // The old leader may hang for ever; the next one does not wait for it.
            if case .elected(let next, let attempt) = failure {
                _ = startLeader(flight, next, attempt: attempt, desk: desk, watch)
            } else {
                await desk?.end(flight)
                flight.land()
                return
            }
        }
    }

    private func releaseLateWaiters(
        _ flight: HTTPFlight,
        _ desk: HTTPFlightDesk?,
        nowNanoseconds: UInt64
    ) async {
        guard let desk else { return }
        let limit = Self.nanoseconds(configuration.flights.waitSecondsMax)
        guard nowNanoseconds >= limit else { return }
        for waiter in flight.waiters(since: nowNanoseconds - limit) {
            guard await desk.enterEscape(flight.key) else { return }
            if !flight.leave(waiter, with: .goAlone(.waitedTooLong)) {
                await desk.leaveEscape(flight.key)
            }
        }
    }

    static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64(max(0, min(seconds, 1e9)) * 1e9) }
}
