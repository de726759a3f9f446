import Platform
import Synchronization

/// A custom store behind the memory; operations on a key reach it in the order of the memory's
/// locks.
///
/// Stores and removals are queued while the key is locked and carried out in the order of each key,
/// several keys at a time. A queued entry is already readable, and a queued removal already
/// effective. A removal that the store could not carry out is tried again; until it succeeds, the
/// entries that it covers are not read.
///
/// The rules are values (`StoreBacklog`, `ScopeBars`, `OpenCalls`); this class calls the store.
final class QueuedStore: Sendable {
    struct State {
        var backlog: StoreBacklog
        var calls: OpenCalls
        /// The time of the alarm, and its number.
        var alarmNanoseconds = UInt64.max
        var alarmNumber = 0
        var usage = StoreUsage()
        /// Nothing more is accepted.
        var isClosed = false

        /// Abandons the calls that are past their limit, and marks their keys.
        mutating func expire(nowNanoseconds: UInt64) -> [OpenCalls.Late] {
            let late = calls.expire(nowNanoseconds: nowNanoseconds)
            for hash in late.compactMap(\.hash) { backlog.lost(hash, CacheError.storeLate) }
            return late
        }
    }

    /// The largest entry that is gathered for the store, also if memory would not keep it.
    static let entryBytesMax = 8 << 20

    let store: any CacheStore
    let limits: StoreLimits
    /// Keys that were stored or removed recently: a reader may be promoting an older entry.
    let replacements = RemovalLedger()
    let supervisor: Supervisor
    let recorder: Recorder
    let clock: any CacheClock
    /// The session of this process; entries of the session class that carry another one are not
    /// read.
    let session: UInt64
    let state: Mutex<State>

    init(
        _ store: any CacheStore,
        limits: StoreLimits = StoreLimits(),
        clock: any CacheClock = SystemClock(),
        session: UInt64 = .random(in: 1 ... .max),
        supervisor: Supervisor,
        recorder: Recorder
    ) {
        self.store = store
        self.limits = limits
        self.clock = clock
        self.session = session
        self.supervisor = supervisor
        self.recorder = recorder
        state = Mutex(
            State(backlog: StoreBacklog(limits: limits), calls: OpenCalls(limits: limits))
        )
    }

    // MARK: Queueing

    /// Accepts an entry; the caller must call `ring` after the key is unlocked.
    func accept(_ entry: StoredEntry) -> StoreOutcome {
        let entry = entry.inSession(session)
        let (outcome, replaced) = state.withLock { state in
            if state.isClosed {
                return (StoreOutcome.refused(.closed), StoreBacklog.Operation?.none)
            }
            replacements.note(entry.entry.head.hash)
            return state.backlog.store(entry)
        }
        withExtendedLifetime(replaced) {}
        return outcome
    }

    /// Accepts a removal; the caller must call `ring` after the key is unlocked.
    func queueRemoval(of key: StoreKey) {
        let replaced = state.withLock { state -> StoreBacklog.Operation? in
            guard !state.isClosed else { return nil }
            replacements.note(key.hash)
            return state.backlog.remove(key)
        }
        withExtendedLifetime(replaced) {}
    }

    /// Returns when the removal of the key that was queued last has been carried out.
    ///
    /// - Throws: The store's error. The key then stays barred, and the removal is tried again.
    func confirmRemoval(of hash: KeyHash) async throws {
        let settlement = Settlement(of: 1, tellsErrors: true)
        try state.withLock { state in
            if state.isClosed { throw CacheError.cacheShutDown }
            if state.backlog.bars.owesEverything { throw CacheError.storeBarred }
            state.backlog.watchLast(hash, settlement)
        }
        tell()
        try await settlement.wait()
    }

    // MARK: Reading

    /// The entry, unless it may be outdated; `seconds` is the time that the reader has.
    func entry(for key: StoreKey, withinSeconds seconds: Double? = nil) async -> StoredEntry? {
        // An entry that is replaced or removed while it is read is looked up once more.
        for _ in 0..<2 {
            let (reading, barred) = state.withLock { state in
                (state.backlog.reading(key), state.backlog.bars.scopes)
            }
            switch reading {
            case .entry(let entry): return entry
            case .absent: return nil
            case .behind: break
            }
            let ticket = replacements.ticket()
            guard let found = await read(key, withinSeconds: seconds) else { return nil }
            if replacements.isCurrent(key.hash, since: ticket) {
                let isBarred = state.withLock { state in
                    if case .behind = state.backlog.reading(key) {
                        return state.backlog.bars.covers(found)
                    }
                    return true
                }
                if isBarred { return nil }
                // The store may have read the entry before a removal that succeeded since.
                if !barred.contains(where: { found.entry.isCovered(by: $0) }) { return found }
            }
        }
        return nil
    }

    private func read(_ key: StoreKey, withinSeconds seconds: Double?) async -> StoredEntry? {
        do {
            let found = try await call(.loading, isLookUp: true, withinSeconds: seconds) {
                [store] in try await store.entry(for: key)
            }
            guard let entry = found?.filed(under: key), entry.isReadable(in: session) else {
                return nil
            }
            return entry
        } catch {
            if !(error is CancellationError) { recorder.storageFailed(error) }
            return nil
        }
    }

    // MARK: Carrying out

    /// Starts the operations that may start, and tells the waiters their results.
    func startWork() {
        let now = clock.monotonicNanoseconds
        while true {
            let (next, isOut) = state.withLock { state -> (StoreBacklog.Start?, Bool) in
                if state.calls.isOut {
                    state.backlog.putOffReady(CacheError.storeLate, nowNanoseconds: now)
                    return (nil, true)
                }
                return (state.backlog.next(), false)
            }
            guard let next else {
                if isOut { setAlarm() }
                break
            }
            start(next, now)
        }
        tell()
    }

    /// Resumes waiters, outside the lock.
    func tell() {
        let (told, isBarred) = state.withLock { $0.backlog.takeNews() }
        for told in told { told.tell() }
        guard isBarred else { return }
        // In a task: the application's hook is not called while a key is locked.
        _ = supervisor.start(.writing) { [recorder] in
            recorder.storageFailed(CacheError.storeBarred)
        }
        setAlarm()
    }

    private func start(_ next: StoreBacklog.Start, _ nowNanoseconds: UInt64) {
        let handle = TaskHandle()
        let deadline = nowNanoseconds &+ limits.maximumOperationTime.nanoseconds
        let id = state.withLock { state in
            state.calls.begin(untilNanoseconds: deadline, isLookUp: false, of: next.hash) {
                [recorder] in
                recorder.storageFailed(CacheError.storeLate)
                handle.cancel()
            }
        }
        guard let id else {
            return end(next.hash, CacheError.storeLate)
        }
        handle.attach(
            supervisor.start(.writing) { [self] in
                var failure: (any Error)?
                do {
                    switch next.operation {
                    case .store(let entry): _ = try await store.store(entry)
                    case .remove(let key): _ = try await store.remove(key)
                    }
                } catch { failure = error }
                state.withLock { $0.calls.end(id) }
                if let failure { recorder.storageFailed(failure) }
                end(next.hash, failure.map(CacheError.storeFailure))
            }
        )
        setAlarm()
    }

    private func end(_ hash: KeyHash, _ error: (any Error)?) {
        let now = clock.monotonicNanoseconds
        state.withLock { $0.backlog.ended(hash, error, nowNanoseconds: now) }
        startWork()
        setAlarm()
    }
}
