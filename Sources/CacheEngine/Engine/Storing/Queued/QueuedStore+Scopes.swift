import Synchronization

/// Operations on the whole store: removals by scope, flushing, usage, shutting down.
extension QueuedStore {
    /// Removes all entries in `scope`; entries that are stored now are no longer read.
    ///
    /// - Throws: The store's error. The scope then stays barred, and the removal is tried again;
    ///   the same holds if the task is cancelled.
    func removeAll(
        in scope: RemovalScope,
        whenForgotten: () async -> Void
    ) async throws -> RemovalCount {
        let barring = Result { try bar(scope) }
        await whenForgotten()
        let (number, withdrawn, settlement) = try barring.get()
        let race = Race<RemovalCount>()
        _ = supervisor.start(.writing) { [self] in
            // Stores that are under way end before it, or bar their keys.
            try? await settlement.wait()
            do {
                let count = try await attempt(scope, number)
                race.finish(.success(count.plausible + withdrawn))
            } catch {
                race.finish(.failure(CacheError.storeFailure(error)))
            }
        }
        return try await race.result()
    }

    /// Keeps the entries in `scope` from being read.
    ///
    /// Returns the number of the attempt to remove them, those that were not stored yet, and the end
    /// of the stores under way.
    private func bar(
        _ scope: RemovalScope
    ) throws -> (number: UInt64, withdrawn: RemovalCount, settlement: Settlement) {
        try state.withLock { state in
            if state.isClosed { throw CacheError.cacheShutDown }
            let number = state.backlog.bars.begin(scope)
            let (count, running) = state.backlog.withdraw(scope)
            let settlement = Settlement(of: running.count)
            for store in running {
                state.backlog.watch(store.hash, number: store.number, settlement)
            }
            return (number, count, settlement)
        }
    }

    /// Tries a failed removal once more.
    func removeAgain(_ scope: RemovalScope) {
        let number = state.withLock { $0.backlog.bars.begin(scope) }
        _ = supervisor.start(.writing) { [self] in _ = try? await attempt(scope, number) }
    }

    private func attempt(_ scope: RemovalScope, _ number: UInt64) async throws -> RemovalCount {
        do {
            let count = try await call(.writing) { [store] in
                try await store.removeAll(in: scope)
            }
            end(scope, number, hasFailed: false)
            return count
        } catch {
            recorder.storageFailed(error)
            end(scope, number, hasFailed: true)
            throw error
        }
    }

    private func end(_ scope: RemovalScope, _ number: UInt64, hasFailed: Bool) {
        let now = clock.monotonicNanoseconds
        state.withLock { state in
            state.backlog.bars.end(scope, number, hasFailed: hasFailed, nowNanoseconds: now)
            if state.backlog.bars.isOverLimit { state.backlog.barEverything() }
        }
        startWork()
        setAlarm()
    }

    // MARK: Flushing

    /// Returns when every operation queued so far has been tried, or the task is cancelled.
    func drained() async {
        let settlement = state.withLock { state in
            let untried = state.backlog.untried
            let settlement = Settlement(of: untried.count)
            for (hash, number) in untried {
                state.backlog.watch(hash, number: number, settlement)
            }
            return settlement
        }
        tell()
        try? await settlement.wait()
    }

    func flush() async throws {
        await drained()
        try Task.checkCancellation()
        do {
            try await call(.writing) { [store] in try await store.flush() }
        } catch {
            if error is CancellationError { throw error }
            recorder.storageFailed(error)
            throw CacheError.storeFailure(error)
        }
    }

    /// The usage of the store; the last known usage if the store does not return in time.
    func usage() async -> StoreUsage {
        guard let usage = try? await call(.loading, { [store] in await store.usage() }) else {
            return state.withLock { $0.usage }
        }
        state.withLock { $0.usage = usage }
        return usage
    }

    /// The number of removals that the store still owes.
    var owedCount: Int { state.withLock { $0.backlog.owedCount } }

    /// Accepts nothing more, and tries the owed removals once more.
    ///
    /// Returns when they have been tried, or the task is cancelled.
    func finish() async {
        let scopes = state.withLock { state -> [RemovalScope]? in
            guard !state.isClosed else { return nil }
            state.isClosed = true
            state.backlog.wake(nowNanoseconds: .max)
            return state.backlog.bars.due(nowNanoseconds: .max)
        }
        guard let scopes else { return await drained() }
        startWork()
        for scope in scopes {
            let number = state.withLock { $0.backlog.bars.begin(scope) }
            _ = try? await attempt(scope, number)
        }
        await drained()
        giveUp()
        let owed = owedCount
        guard owed > 0 else { return }
        recorder.storageFailed(
            CacheError(
                .storageFailed,
                detail: "\(owed) removals failed before the shutdown; the store may return the "
                    + "removed entries to the next cache that opens it"
            )
        )
    }
}

extension QueuedStore {
    /// Stops waiting for calls, and tells the waiters that the store took too long.
    private func giveUp() {
        let now = clock.monotonicNanoseconds
        let late = state.withLock { state in
            let late = state.expire(nowNanoseconds: .max)
            state.backlog.putOffReady(CacheError.storeLate, nowNanoseconds: now)
            return late
        }
        for call in late { call.expire() }
        tell()
    }
}

extension RemovalCount {
    /// The count, limited to numbers that a store can hold.
    fileprivate var plausible: RemovalCount {
        RemovalCount(
            entries: min(max(0, entries), 1 << 48),
            bytes: min(max(0, bytes), 1 << 60)
        )
    }
}
