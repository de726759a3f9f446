import Platform

/// The time limits of a flight: for the head, for the next piece of the body, and for a wait for
/// another request's response.
extension FlightFetch: WatchedFlight {
    func look() {
        let now = services.clock.monotonicNanoseconds
        if progress.endDeserted() {
            desk?.withdraw(flight)
            return endDelivery(nil)
        }
        releaseLateWaiters(nowNanoseconds: now)
        // For a request with content, the time for its response begins once the content has been
        // sent.
        let upload = context.upload
        if upload == nil { endOverdueWaiters(nowNanoseconds: now) }
        let idle = services.configuration.originLimits.maximumIdleTime
        guard
            let (mark, still) = progress.look(
                at: flight,
                uploadedPieces: upload?.pieceCount ?? 0,
                idleNanoseconds: idle.nanoseconds,
                nowNanoseconds: now
            )
        else { return }
        let limit =
            mark.isUnanswered
            ? headSeconds + (upload?.secondsUnseen ?? 0) : idle.seconds
        // An attempt has the time of its request, less the time spent waiting for another request.
        let isOverdue = upload == nil && mark.isUnanswered && flight.untilNanoseconds <= now
        guard isOverdue || still >= UInt64(nanosecondsIn: limit) else { return }
        let error = CacheError.originTimedOut(afterSeconds: limit)
        if mark.isUnanswered {
            replaceHangingLeader(error, attempt: mark.attempt)
        } else {
            expire(error)
        }
    }

    private var headSeconds: Double {
        if Mutant.cutsLongTimeouts.isOn {
            return services.configuration.originLimits.maximumHeadTime.seconds
        }
        return Double(context.asked.headNanoseconds) / 1e9
    }

    func abort(_ error: any Error) { flight.abort(error) }

    /// Ends a flight whose body makes no progress.
    private func expire(_ error: CacheError) {
        flight.retire()
        if progress.noteBodyFailure() {
            services.recorder.originFailed(error, context.asked.request)
        }
        endDelivery(error)
        end()
    }

    /// Replaces a leader whose head is overdue; the old leader may hang for ever, and is not waited
    /// for.
    private func replaceHangingLeader(_ error: CacheError, attempt: Int) {
        switch giveUp(context, error, attempt: attempt) {
        case .superseded: break
        case .elected(let next, let nextAttempt):
            endDelivery(error)
            replaceLeader(next, attempt: nextAttempt)
        case .over:
            endDelivery(error)
            end()
        }
    }

    /// Breaks off the body that the leader delivers, if there is an error, and cancels the leader.
    ///
    /// This runs in its own task, as an origin may react slowly and the other flights must be
    /// watched meanwhile.
    private func endDelivery(_ error: CacheError?) {
        let (leader, chain) = (flight.work, progress.chain)
        services.supervisor.start(on: executor) {
            if let error { chain?.fail(error) }
            leader?.cancel()
        }
    }

    /// Ends the wait of each request whose own time for a head is over.
    private func endOverdueWaiters(nowNanoseconds: UInt64) {
        for (waiter, headNanoseconds) in flight.waiters(past: nowNanoseconds) {
            let limit =
                Mutant.tellsTheCommonLimit.isOn
                ? services.headNanoseconds : headNanoseconds
            let error = CacheError.originTimedOut(afterSeconds: Double(limit) / 1e9)
            flight.leave(waiter, with: .failed(error, isShared: true))
        }
    }

    /// Lets waiters that have waited too long send their own requests, as many as the desk allows.
    private func releaseLateWaiters(nowNanoseconds: UInt64) {
        guard let desk else { return }
        let limit = services.configuration.collapsing.maximumWait.nanoseconds
        guard nowNanoseconds >= limit else { return }
        for waiter in flight.waiters(since: nowNanoseconds - limit) {
            guard desk.enterEscape(flight.key) else { return }
            if !flight.leave(waiter, with: .escape(flight.key)) {
                desk.leaveEscape(flight.key)
            }
        }
    }
}
