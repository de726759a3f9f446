import CacheEngine
import CacheTestSupport
import Synchronization

/// A store of the application's own that fails, is slow, and forgets, but never lies.
final class FaultyStore: CacheStore {
    private let dice: Dice
    private let entries = Mutex<[StoreKey: StoredEntry]>([:])

    init(_ dice: Dice) { self.dice = dice }

    func entry(for key: StoreKey) async throws -> StoredEntry? {
        try await beFaulty()
        return entries.withLock { $0[key] }
    }

    func store(_ entry: StoredEntry) async throws -> StoreOutcome {
        do {
            try await beFaulty()
        } catch {
            // What could not be written must not leave the old entry readable.
            entries.withLock { $0[entry.key] = nil }
            throw error
        }
        entries.withLock { $0[entry.key] = entry }
        return .stored
    }

    /// A removal is never lost: a store that cannot remove must not serve.
    func remove(_ key: StoreKey) async throws -> Bool {
        await pause()
        return entries.withLock { $0.removeValue(forKey: key) } != nil
    }

    func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        await pause()
        return entries.withLock { entries in
            let before = entries.count
            entries = entries.filter { !Self.covers(scope, $0.value) }
            return RemovalCount(entries: before - entries.count)
        }
    }

    private static func covers(_ scope: RemovalScope, _ entry: StoredEntry) -> Bool {
        switch scope {
        case .everything: true
        case .tag(let tag): entry.tags.contains(tag)
        case .storageClass(let storageClass): entry.storageClass == storageClass
        case .storedAfter(let seconds): entry.createdSeconds >= seconds
        case .storedBefore(let seconds): entry.createdSeconds < seconds
        }
    }

    func usage() async -> StoreUsage { StoreUsage() }

    func flush() async throws { try await beFaulty() }

    private func beFaulty() async throws {
        await pause()
        if dice.oneIn(6) { throw CacheError(.storageFailed, detail: "Input/output error") }
    }

    private func pause() async { for _ in 0..<dice.below(4) { await Task.yield() } }
}
