import Platform
import Synchronization

/// Calls of the store, each with a limit, and the alarm at the first of the limits.
extension QueuedStore {
    /// Calls the store, and returns when the call returns, at the limit, or when the task is
    /// cancelled.
    ///
    /// - Throws: The store's error; `storeLate` at the limit, or if the store is not called
    ///   because too many calls are past theirs.
    func call<Result: Sendable>(
        _ work: Supervisor.Work,
        isLookUp: Bool = false,
        withinSeconds seconds: Double? = nil,
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let race = Race<Result>()
        let handle = TaskHandle()
        let deadline =
            clock.monotonicNanoseconds &+ limits.maximumOperationTime.nanoseconds
        let id = state.withLock { state in
            state.calls.begin(untilNanoseconds: deadline, isLookUp: isLookUp) {
                race.finish(.failure(CacheError.storeLate))
                handle.cancel()
            }
        }
        guard let id else { throw CacheError.storeLate }
        let task = supervisor.start(work) { [self] in
            let result: Swift.Result<Result, any Error>
            do {
                let value = try await withTaskCancellationHandler {
                    try await body()
                } onCancel: {
                    // The caller stops waiting, even if the store goes on.
                    race.finish(.failure(CancellationError()))
                }
                result = .success(value)
            } catch { result = .failure(error) }
            let wasOut = state.withLock { state in
                let wasOut = state.calls.isOut
                state.calls.end(id)
                return wasOut
            }
            race.finish(result)
            if wasOut {
                startWork()
                setAlarm()
            }
        }
        handle.attach(task)
        setAlarm()
        let timer = timer(seconds) { race.finish(.failure(CacheError.storeLate)) }
        defer { timer?.cancel() }
        return try await withTaskCancellationHandler {
            try await race.result()
        } onCancel: {
            handle.cancel()
        }
    }

    /// The task that ends a wait before the limit of all calls; `nil` if that limit comes first.
    private func timer(
        _ seconds: Double?,
        _ expire: @escaping @Sendable () -> Void
    ) -> Task<Void, Never>? {
        guard let seconds, seconds < limits.maximumOperationTime.seconds else { return nil }
        return supervisor.start(.watching) { [clock] in
            let nanoseconds = UInt64(nanosecondsIn: seconds)
            guard (try? await clock.sleep(nanoseconds: nanoseconds)) != nil else { return }
            expire()
        }
    }

    // MARK: The alarm

    /// Sets the alarm to the first limit, or to the first removal that is due again.
    ///
    /// The task holds the queue only when the alarm goes off.
    func setAlarm() {
        let alarm = state.withLock { state -> (atNanoseconds: UInt64, number: Int)? in
            guard let first = state.firstMoment, first < state.alarmNanoseconds else { return nil }
            state.alarmNanoseconds = first
            state.alarmNumber += 1
            return (first, state.alarmNumber)
        }
        guard let alarm else { return }
        let now = clock.monotonicNanoseconds
        let rest = alarm.atNanoseconds > now ? alarm.atNanoseconds - now : 0
        _ = supervisor.start(.watching) { [weak self, clock] in
            // An alarm that has been replaced since does nothing.
            guard (try? await clock.sleep(nanoseconds: max(rest, 1_000_000))) != nil else { return }
            self?.goOff(alarm.number)
        }
    }

    private func goOff(_ number: Int) {
        let now = clock.monotonicNanoseconds
        let (late, scopes) = state.withLock { state -> ([OpenCalls.Late], [RemovalScope]) in
            guard state.alarmNumber == number else { return ([], []) }
            state.alarmNanoseconds = .max
            let late = state.expire(nowNanoseconds: now)
            guard !state.calls.isOut else { return (late, []) }
            state.backlog.wake(nowNanoseconds: now)
            return (late, state.backlog.bars.due(nowNanoseconds: now))
        }
        for call in late { call.expire() }
        for scope in scopes { removeAgain(scope) }
        startWork()
        setAlarm()
    }
}

extension QueuedStore.State {
    fileprivate var firstMoment: UInt64? {
        let deadline = calls.firstDeadlineNanoseconds ?? .max
        // Nothing is tried again while the store is not called.
        let due =
            calls.isOut
            ? .max : min(backlog.firstDueNanoseconds, backlog.bars.firstDueNanoseconds ?? .max)
        let first = min(deadline, due)
        return first == .max ? nil : first
    }
}
