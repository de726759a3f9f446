import CacheEngine
import Synchronization

@testable import CacheProxy

/// A store whose removals wait for its gate once `isHeld` is set.
final class GatedStore: CacheStore {
    let gate = Gate()
    let isHeld = Atomic(false)
    let waiting = Atomic(0)
    private let entries = Mutex<[StoreKey: StoredEntry]>([:])

    func entry(for key: StoreKey) async throws -> StoredEntry? { entries.withLock { $0[key] } }

    func store(_ entry: StoredEntry) async throws -> StoreOutcome {
        entries.withLock { $0[entry.key] = entry }
        return .stored
    }

    func remove(_ key: StoreKey) async throws -> Bool {
        await hold()
        return entries.withLock { $0.removeValue(forKey: key) != nil }
    }

    func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        await hold()
        return entries.withLock { entries in
            defer { entries = [:] }
            return RemovalCount(entries: entries.count)
        }
    }

    func usage() async -> StoreUsage { StoreUsage() }
    func flush() async throws {}

    private func hold() async {
        guard isHeld.load(ordering: .relaxed) else { return }
        waiting.add(1, ordering: .relaxed)
        await gate.wait()
    }
}
