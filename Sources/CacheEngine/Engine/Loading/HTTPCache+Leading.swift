import HTTPCaching

/// The leading side of a flight: asks the origin, tells everyone, stores.
extension HTTPCache {
    static let shutDownError = CacheError(.shutDown, detail: "The cache has been shut down")

    /// A flight as those see it who lead it and look after it.
    struct Leading: Sendable {
        let flight: HTTPFlight
        /// Where others join; nil for a request that is alone.
        let desk: HTTPFlightDesk?
        let watch: FlightWatch
        /// What it was started for.
        let load: Load
        /// What is being fetched by those who asked for it.
        let keysBeingLoaded = HTTPCache.keysBeingLoaded
    }

    /// Starts the task that leads `flight`, and looks after it until it ends.
    func startLeading(
        _ flight: HTTPFlight,
        _ load: Load,
        desk: HTTPFlightDesk?
    ) -> Task<Void, Never> {
        recorder.counters.add(.flights)
        let watch = FlightWatch(nowNanoseconds: clock.monotonicNanoseconds)
        let leading = Leading(flight: flight, desk: desk, watch: watch, load: load)
        if lookout.add(leading) { startLookout() }
        return startLeader(leading, load, attempt: 1)
    }

    func startLeader(_ leading: Leading, _ load: Load, attempt: Int) -> Task<Void, Never> {
        let leader = supervisor.start { [self] in
            let last = await lead(leading, load, attempt: attempt)
            // Another leader may have taken over. The flight is its own then, and may be over for
            // those who would join while its body still arrives.
            guard leading.flight.attempt == last else { return }
            await end(leading)
        }
        leading.flight.attach(leader)
        leading.watch.attach(leader: leader)
        return leader
    }

    func end(_ leading: Leading) async {
        await leading.desk?.end(leading.flight)
        leading.flight.land()
        leading.watch.end()
        lookout.remove(leading)
    }

    /// Asks until somebody's request is answered or nobody is left to try.
    ///
    /// - Returns: The last attempt that was this leader's.
    private func lead(_ leading: Leading, _ load: Load, attempt: Int) async -> Int {
        var load = load
        var attempt = attempt
        while true {
            load = load.licensed(by: leading.flight.licence)
            do {
                guard supervisor.isOpen else { throw Self.shutDownError }
                await land(try await arrive(load), leading, load, attempt: attempt)
                return attempt
            } catch {
                let failure = await giveUp(leading, load, error, attempt: attempt)
                guard case .elected(let next, let nextAttempt) = failure else {
                    return attempt
                }
                load = next
                attempt = nextAttempt
            }
        }
    }

    /// An attempt failed: who tries next, if anyone.
    func giveUp(
        _ leading: Leading,
        _ load: Load,
        _ error: any Error,
        attempt: Int
    ) async -> HTTPFlight.Failure {
        let error = shown(error)
        // Before anybody is told: for how long the error is shared counts from here.
        let now = clock.monotonicNanoseconds
        let failure = leading.flight.fail(error, attempt: attempt)
        if case .superseded = failure { return failure }
        recorder.originFailed(error)
        if load.purpose == .refresh { await noteRefresh(load, leading.desk, succeeded: false) }
        switch failure {
        case .elected: recorder.counters.add(.reElections)
        case .over:
            recorder.counters.add(.sharedErrors)
            await leading.desk?.noteFailure(of: leading.flight, error, nowNanoseconds: now)
        case .superseded: break
        }
        return failure
    }

    /// The error as those who wait for the fetch may see it: its own cancellation is none of theirs.
    private func shown(_ error: any Error) -> any Error {
        guard supervisor.isOpen else { return Self.shutDownError }
        guard error is CancellationError else { return error }
        return CacheError(.originFailed, detail: "The origin gave the request up")
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
    private func land(
        _ arrival: Arrival,
        _ leading: Leading,
        _ load: Load,
        attempt: Int
    ) async {
        let audience = audience(of: arrival)
        await noteShareable(arrival, leading)
        // What came whole is brought home first: those who wait then get it with the head.
        let isHome = isAtHand(arrival.delivery)
        if isHome, let delivery = arrival.delivery { await deliver(delivery, load, leading) }
        if leading.flight.waiterCount == 0 { arrival.delivery?.chain.awaitNobody() }
        guard leading.flight.answer(arrival.answer, for: audience, attempt: attempt) else { return }
        if load.purpose == .refresh {
            await noteRefresh(load, leading.desk, succeeded: arrival.sharing != .failure)
        }
        if let refusal = arrival.answer.refusal { recorder.refused(refusal) }
        if !isHome, let delivery = arrival.delivery {
            leading.watch.arriving(delivery.chain)
            await deliver(delivery, load, leading)
        }
    }

    /// Whether the whole body is there, and nothing that takes time stands between it and the
    /// store.
    private func isAtHand(_ delivery: Delivery?) -> Bool {
        guard let count = delivery?.origin.presentCount else { return false }
        // No reader has come yet: more than a window would wait for one.
        return count < configuration.originLimits.windowBytes
            && count <= tiers.gatheredBytesMax && configuration.hooks.willStore == nil
    }

    /// An answer that must be confirmed before each use serves those who waited for it, and nobody
    /// who comes later.
    private func audience(of arrival: Arrival) -> FlightAudience {
        guard arrival.sharing == .everyone else { return .leader }
        let facts: StoredFacts?
        if case .confirmed(let stored) = arrival.answer.content {
            facts = stored.facts
        } else {
            facts = arrival.answer.facts
        }
        guard let facts, facts.isFresh(at: clock.nowSeconds), !facts.flags.contains(.noCache)
        else { return .waiting }
        return .everyone
    }

    /// Marks the key whose answer is for the asker alone, and removes the mark when one is not.
    private func noteShareable(_ arrival: Arrival, _ leading: Leading) async {
        let now = clock.monotonicNanoseconds
        let key = leading.flight.key
        switch arrival.sharing {
        case .failure: break
        case .everyone: await desk(key).noteShareable(true, key, nowNanoseconds: now)
        case .askerOnly:
            guard let desk = leading.desk else { return }
            recorder.counters.add(.hitForMissMarks)
            await desk.noteShareable(false, key, nowNanoseconds: now)
        }
    }

    static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64(max(0, min(seconds, 1e9)) * 1e9) }
}
