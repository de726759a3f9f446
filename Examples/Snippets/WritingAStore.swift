import CacheEngine

/// A store that keeps its entries in a dictionary.
actor DictionaryStore: CacheStore {
    private var entries: [StoreKey: StoredEntry] = [:]

    func entry(for key: StoreKey) async throws -> StoredEntry? { entries[key] }

    func store(_ entry: StoredEntry) async throws -> StoreOutcome {
        entries[entry.key] = entry
        return .stored
    }

    func remove(_ key: StoreKey) async throws -> Bool {
        entries.removeValue(forKey: key) != nil
    }

    func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        let doomed = entries.values.filter { $0.isCovered(by: scope) }
        for entry in doomed { entries[entry.key] = nil }
        return RemovalCount(entries: doomed.count)
    }

    func usage() async -> StoreUsage { StoreUsage(entries: entries.count) }

    func flush() async throws {}
}

/// A store that keeps serialized entries in a dictionary, which stands for a database.
actor ByteStore {
    private var rows: [[UInt8]: [UInt8]] = [:]

    func save(_ entry: StoredEntry) -> StoreOutcome {
        guard !entry.isMemoryOnly, let bytes = entry.serialized else {
            rows[entry.key.bytes] = nil
            return .refused(.notAdmitted)
        }
        rows[entry.key.bytes] = bytes
        return .stored
    }

    func load(_ key: StoreKey) -> StoredEntry? {
        rows[key.bytes].flatMap { StoredEntry(serialized: $0) }
    }
}

enum Stores {
    static func plugged(origin: any Origin) async throws -> HTTPCache {
        let configuration = HTTPCache.Configuration(
            memory: .megabytes(64),
            backing: .custom(DictionaryStore())
        )
        return try await HTTPCache(configuration: configuration, origin: origin)
    }
}
