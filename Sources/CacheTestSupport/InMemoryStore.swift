public import CacheEngine
import Synchronization

/// A store that keeps every promise, backed by a dictionary; a `NemesisStore` may wrap it.
public final class InMemoryStore: CacheStore {
    private let entries = Mutex<[StoreKey: StoredEntry]>([:])

    /// Creates an empty store.
    public init() {}

    /// The number of entries.
    public var count: Int { entries.withLock { $0.count } }

    /// An arbitrary entry, or `nil` if the store is empty.
    public var first: StoredEntry? { entries.withLock { $0.values.first } }

    /// Returns whether the key of any entry contains `text`.
    public func holds(_ text: String) -> Bool {
        entries.withLock { entries in
            entries.keys.contains { String(decoding: $0.bytes, as: UTF8.self).contains(text) }
        }
    }

    /// Returns the entry, or `nil` if it is missing.
    public func entry(for key: StoreKey) async throws -> StoredEntry? {
        entries.withLock { $0[key] }
    }

    /// Stores the entry.
    public func store(_ entry: StoredEntry) async throws -> StoreOutcome {
        entries.withLock { entries in
            // An equal key may carry the hash of another process, so the key is replaced too.
            entries[entry.key] = nil
            entries[entry.key] = entry
        }
        return .stored
    }

    /// Removes the entry.
    public func remove(_ key: StoreKey) async throws -> Bool {
        entries.withLock { $0.removeValue(forKey: key) } != nil
    }

    /// Removes the entries in `scope`.
    public func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        entries.withLock { entries in
            var count = RemovalCount()
            for (key, entry) in entries where entry.isCovered(by: scope) {
                entries[key] = nil
                count = count + RemovalCount(entries: 1, bytes: entry.sizeBytes)
            }
            return count
        }
    }

    /// Counts the entries and their bytes.
    public func usage() async -> StoreUsage {
        entries.withLock { entries in
            let bytes = entries.values.reduce(0) { $0 + $1.sizeBytes }
            return StoreUsage(entries: entries.count, bytes: bytes, capacityBytes: .max)
        }
    }

    /// Does nothing, because no store is deferred.
    public func flush() async throws {}
}
