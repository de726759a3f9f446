import Synchronization

/// The flights that are under way, and whether somebody looks after them.
///
///     idle ──add──▶ looking ──rest, with no flight──▶ idle
///
/// One task looks after all of them: a task and a timer for each would cost a miss more than its place
/// in the store.
final class Lookout: Sendable {
    private struct State {
        var flights: [ObjectIdentifier: HTTPCache.Leading] = [:]
        var isLooking = false
    }

    private let state = Mutex(State())

    /// A flight begins.
    ///
    /// - Returns: Whether the task that looks is to be started.
    func add(_ leading: HTTPCache.Leading) -> Bool {
        state.withLock { state in
            state.flights[ObjectIdentifier(leading.watch)] = leading
            defer { state.isLooking = true }
            return !state.isLooking
        }
    }

    func remove(_ leading: HTTPCache.Leading) {
        let removed = state.withLock { state in
            state.flights.removeValue(forKey: ObjectIdentifier(leading.watch))
        }
        // What it held is let go outside the lock.
        _ = removed
    }

    /// All flights under way.
    var flights: [HTTPCache.Leading] { state.withLock { Array($0.flights.values) } }

    /// Whether the task that looks may end, as there is no flight; the next one starts it again.
    func mayRest() -> Bool {
        state.withLock { state in
            guard state.flights.isEmpty else { return false }
            state.isLooking = false
            return true
        }
    }

    /// The task that looks has ended for a reason of its own.
    func stop() { state.withLock { $0.isLooking = false } }
}

extension HTTPCache {
    /// Ends what takes too long: a head that does not come, a body that stands still, a wait for
    /// somebody else's answer.
    ///
    /// The task holds the cache only while it looks.
    func startLookout() {
        let limits = configuration.originLimits
        let shortest = min(
            configuration.flights.waitSecondsMax,
            limits.headSecondsMax,
            limits.idleSecondsMax
        )
        let tick = Self.nanoseconds(max(0.01, min(5, shortest / 4)))
        _ = supervisor.start(.watching) { [weak self, clock] in
            while (try? await clock.sleep(nanoseconds: tick)) != nil {
                guard let self else { return }
                for leading in self.lookout.flights { await self.look(after: leading) }
                if self.lookout.mayRest() { return }
            }
            self?.lookout.stop()
        }
    }

    private func look(after leading: Leading) async {
        let now = clock.monotonicNanoseconds
        await releaseLateWaiters(leading, nowNanoseconds: now)
        guard let (progress, still) = leading.watch.look(at: leading.flight, nowNanoseconds: now)
        else { return }
        let limits = configuration.originLimits
        let limit = progress.isUnanswered ? limits.headSecondsMax : limits.idleSecondsMax
        guard still >= Self.nanoseconds(limit) else { return }
        let error = CacheError(
            .originTimedOut,
            detail: "The origin has sent nothing for \(limit) seconds"
        )
        recorder.counters.add(.timeouts)
        guard progress.isUnanswered else { return await expire(leading, error) }
        await replaceLeader(leading, error, attempt: progress.attempt)
    }

    /// A body stands still.
    private func expire(_ leading: Leading, _ error: CacheError) async {
        leading.flight.retire()
        recorder.originFailed(error)
        endDelivery(of: leading, error)
        await end(leading)
    }

    /// A head does not come: the old leader may hang for ever, and the next does not wait for it.
    private func replaceLeader(_ leading: Leading, _ error: CacheError, attempt: Int) async {
        switch await giveUp(leading, leading.load, error, attempt: attempt) {
        case .superseded: break
        case .elected(let next, let nextAttempt):
            endDelivery(of: leading, error)
            Self.$keysBeingLoaded.withValue(leading.keysBeingLoaded) {
                _ = startLeader(leading, next, attempt: nextAttempt)
            }
        case .over:
            endDelivery(of: leading, error)
            await end(leading)
        }
    }

    /// The leader took too long: what it was delivering breaks off, and it is cancelled.
    ///
    /// In a task of its own: what an origin does when it is cancelled may take long, and the other
    /// flights are to be looked after meanwhile.
    private func endDelivery(of leading: Leading, _ error: CacheError) {
        let (leader, chain) = leading.watch.underWay
        _ = supervisor.start {
            chain?.fail(error)
            leader?.cancel()
        }
    }

    private func releaseLateWaiters(_ leading: Leading, nowNanoseconds: UInt64) async {
        guard let desk = leading.desk else { return }
        let limit = Self.nanoseconds(configuration.flights.waitSecondsMax)
        guard nowNanoseconds >= limit else { return }
        for waiter in leading.flight.waiters(since: nowNanoseconds - limit) {
            guard await desk.enterEscape(leading.flight.key) else { return }
            if !leading.flight.leave(waiter, with: .goAlone(.waitedTooLong)) {
                await desk.leaveEscape(leading.flight.key)
            }
        }
    }
}
