import Synchronization

/// Puts a store of the application's own behind the memory, in the order of the memory's sections.
///
/// Stores and removals are queued while the key is locked and carried out one after the other; what
/// is queued is already readable, and already removed. Of one key only the last operation waits.
///
/// Invariants:
/// 1. `latest[key]` is the last operation of that key that has not been carried out.
/// 2. A key is in `waiting` exactly as long as it is in `queue` from `head` on.
final class QueuedStore: Sendable {
    private enum Operation: Sendable {
        case store(StoredEntry)
        case remove(StoreKey)

        var queuedBytes: Int {
            switch self {
            case .store(let entry): entry.entry.sizeBytes
            case .remove: 0
            }
        }
    }

    private struct State {
        var queue: [KeyHash] = []
        var head = 0
        var waiting: Set<KeyHash> = []
        var latest: [KeyHash: Operation] = [:]
        var queuedBytes = 0
        /// Keys that have been taken from the queue, and those of them that are done with.
        var takenCount = 0
        var doneCount = 0
        /// Who waits until that many are done with.
        var watchers: [(doneCount: Int, continuation: UnsafeContinuation<Void, Never>)] = []
        var isDraining = false
        /// Nothing more is accepted.
        var isClosed = false

        var waitingCount: Int { queue.count - head }
    }

    /// More than this is refused: a store that is slower than the traffic must not fill memory.
    private static let queuedBytesMax = 64 << 20
    /// The largest entry that is gathered for the store, whatever memory would keep.
    static let entryBytesMax = 8 << 20

    let store: any CacheStore
    /// What was stored lately: it replaced what a reader may be bringing back.
    let replacements = RemovalLedger()
    private let supervisor: Supervisor
    private let recorder: Recorder
    private let state = Mutex(State())

    init(_ store: any CacheStore, supervisor: Supervisor, recorder: Recorder) {
        self.store = store
        self.supervisor = supervisor
        self.recorder = recorder
    }

    func enqueue(_ entry: StoredEntry) -> StoreOutcome {
        let size = entry.entry.sizeBytes
        let (outcome, replaced) = state.withLock { state -> (StoreOutcome, Operation?) in
            if state.isClosed { return (.refused(.closed), nil) }
            let hasRoom = state.queuedBytes + size <= Self.queuedBytesMax
            let operation = hasRoom ? Operation.store(entry) : .remove(entry.key)
            let outcome = hasRoom ? StoreOutcome.stored : .refused(.queueFull)
            replacements.note(entry.entry.head.hash)
            return (outcome, add(operation, entry.entry.head.hash, &state))
        }
        withExtendedLifetime(replaced) {}
        drain()
        return outcome
    }

    func enqueueRemoval(_ key: StoreKey) {
        let replaced = state.withLock { $0.isClosed ? nil : add(.remove(key), key.hash, &$0) }
        withExtendedLifetime(replaced) {}
        drain()
    }

    func entry(for key: StoreKey) async -> StoredEntry? {
        switch state.withLock({ $0.latest[key.hash] }) {
        case .store(let entry) where entry.key == key: return entry
        case .remove: return nil
        default: break
        }
        do {
            return try await store.entry(for: key)?.filed(under: key)
        } catch {
            recorder.storageFailed(error)
            return nil
        }
    }

    /// Returns when everything queued so far has been carried out.
    func drained() async {
        await withUnsafeContinuation { continuation in
            let isDrained = state.withLock { state in
                let target = state.takenCount + state.waitingCount
                guard state.doneCount < target else { return true }
                state.watchers.append((target, continuation))
                return false
            }
            if isDrained { continuation.resume() }
        }
    }

    /// Carries out what is still queued, on the caller's task, and accepts nothing more.
    func finish() async {
        let isUnderWay = state.withLock { state in
            state.isClosed = true
            defer { state.isDraining = true }
            return state.isDraining
        }
        if isUnderWay { await drained() } else { await carryOutAll() }
    }

    /// What it took the place of is for the caller to let go of, outside the lock.
    private func add(_ operation: Operation, _ hash: KeyHash, _ state: inout State) -> Operation? {
        state.queuedBytes += operation.queuedBytes
        let before = state.latest.updateValue(operation, forKey: hash)
        if state.waiting.insert(hash).inserted {
            state.queue.append(hash)
        } else if let before {
            state.queuedBytes -= before.queuedBytes
        }
        return before
    }

    private func drain() {
        let mustStart = state.withLock { state in
            guard !state.isDraining, !state.isClosed else { return false }
            state.isDraining = true
            return true
        }
        guard mustStart else { return }
        _ = supervisor.start(.writing) { [self] in await carryOutAll() }
    }

    private func carryOutAll() async {
        while let next = takeNext() { await carryOut(next.operation, next.hash) }
    }

    private func takeNext() -> (hash: KeyHash, operation: Operation)? {
        state.withLock { state in
            guard state.head < state.queue.count else {
                state.isDraining = false
                return nil
            }
            let hash = state.queue[state.head]
            state.head += 1
            if state.head * 2 >= state.queue.count {
                state.queue.removeFirst(state.head)
                state.head = 0
            }
            state.waiting.remove(hash)
            state.takenCount += 1
            guard let operation = state.latest[hash] else {
                preconditionFailure("A key waits without an operation")
            }
            return (hash, operation)
        }
    }

    private func carryOut(_ operation: Operation, _ hash: KeyHash) async {
        do {
            switch operation {
            case .store(let entry): _ = try await store.store(entry)
            case .remove(let key): _ = try await store.remove(key)
            }
        } catch {
            recorder.storageFailed(error)
        }
        let (done, told) = state.withLock { state in
            state.queuedBytes -= operation.queuedBytes
            state.doneCount += 1
            let told = state.watchers.filter { $0.doneCount <= state.doneCount }
            if !told.isEmpty { state.watchers.removeAll { $0.doneCount <= state.doneCount } }
            // A newer one of the same key waits behind.
            let isLast = !state.waiting.contains(hash)
            return (isLast ? state.latest.removeValue(forKey: hash) : nil, told)
        }
        withExtendedLifetime(done) {}
        for watcher in told { watcher.continuation.resume() }
    }
}
