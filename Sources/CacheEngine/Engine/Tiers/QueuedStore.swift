import Synchronization

/// Puts a store of the application's own behind the memory, in the order of the memory's sections.
///
/// Stores and removals are queued while the key is locked and carried out one after the other; what
/// is queued is already readable, and already removed.
///
/// Invariant: `latest[key]` is the last operation of that key that has not been carried out.
final class QueuedStore: Sendable {
    private enum Operation: Sendable {
        case store(StoredEntry)
        case remove(StoreKey)
    }

    private struct State {
        var queue: [(id: UInt64, hash: KeyHash, operation: Operation)] = []
        var latest: [KeyHash: (id: UInt64, operation: Operation)] = [:]
        var queuedBytes = 0
        var nextID: UInt64 = 0
        var isDraining = false
    }

    /// More than this is refused: a store that is slower than the traffic must not fill memory.
    private static let queuedBytesMax = 64 << 20
    /// The largest entry that is gathered for the store, whatever memory would keep.
    static let entryBytesMax = 8 << 20

    let store: any CacheStore
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
        let hasRoom = state.withLock { state in
            let hasRoom = state.queuedBytes + size <= Self.queuedBytesMax
            add(hasRoom ? .store(entry) : .remove(entry.key), entry.entry.head.hash, &state)
            if hasRoom { state.queuedBytes += size }
            return hasRoom
        }
        drain()
        return hasRoom ? .stored : .refused(.queueFull)
    }

    func enqueueRemoval(_ key: StoreKey) {
        state.withLock { add(.remove(key), key.hash, &$0) }
        drain()
    }

    func entry(for key: StoreKey) async -> StoredEntry? {
        switch state.withLock({ $0.latest[key.hash]?.operation }) {
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
        while state.withLock({ !$0.queue.isEmpty || $0.isDraining }) {
            await supervisor.waitUntilIdle()
        }
    }

    /// Carries out what is still queued, on the caller's task.
    func finish() async {
        while let next = takeNext() { await carryOut(next) }
    }

    private func add(_ operation: Operation, _ hash: KeyHash, _ state: inout State) {
        state.nextID += 1
        state.queue.append((state.nextID, hash, operation))
        state.latest[hash] = (state.nextID, operation)
    }

    private func drain() {
        let mustStart = state.withLock { state in
            defer { state.isDraining = true }
            return !state.isDraining
        }
        guard mustStart else { return }
        _ = supervisor.start(.writing) { [self] in
            while let next = takeNext() { await carryOut(next) }
        }
    }

    private func takeNext() -> (id: UInt64, hash: KeyHash, operation: Operation)? {
        state.withLock { state in
            guard !state.queue.isEmpty else {
                state.isDraining = false
                return nil
            }
            return state.queue.removeFirst()
        }
    }

    private func carryOut(_ next: (id: UInt64, hash: KeyHash, operation: Operation)) async {
        do {
            switch next.operation {
            case .store(let entry): _ = try await store.store(entry)
            case .remove(let key): _ = try await store.remove(key)
            }
        } catch {
            recorder.storageFailed(error)
        }
        state.withLock { state in
            if case .store(let entry) = next.operation {
                state.queuedBytes -= entry.entry.sizeBytes
            }
            if state.latest[next.hash]?.id == next.id { state.latest[next.hash] = nil }
        }
    }
}
