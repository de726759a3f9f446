import CacheEngine
import CacheTestSupport
import Synchronization

/// A store in memory that records every body it is given and counts its calls.
actor RecordingStore: CacheStore {
    fileprivate var entries: [StoreKey: StoredEntry] = [:]
    private var given: [StoredEntry] = []
    private(set) var reads = 0
    private(set) var removals = 0
    private(set) var stores = 0

    var count: Int { entries.count }

    func holds(_ body: String) -> Bool {
        entries.values.contains { Self.text($0).contains(body) }
    }

    func everHeld(_ body: String) -> Bool { given.contains { Self.text($0).contains(body) } }

    func entry(for key: StoreKey) -> StoredEntry? {
        reads += 1
        return entries[key]
    }

    func store(_ entry: StoredEntry) -> StoreOutcome {
        stores += 1
        given.append(entry)
        entries[entry.key] = entry
        return .stored
    }

    func remove(_ key: StoreKey) -> Bool {
        removals += 1
        return entries.removeValue(forKey: key) != nil
    }

    func removeAll(in scope: RemovalScope) -> RemovalCount {
        var count = RemovalCount()
        for (key, entry) in entries where entry.isCovered(by: scope) {
            entries[key] = nil
            count.entries += 1
            count.bytes += entry.sizeBytes
        }
        return count
    }

    func usage() -> StoreUsage {
        StoreUsage(
            entries: entries.count,
            bytes: entries.values.reduce(0) { $0 + $1.sizeBytes },
            capacityBytes: .max
        )
    }

    func flush() {}

    private static func text(_ entry: StoredEntry) -> String {
        String(decoding: entry.serialized ?? [], as: UTF8.self)
    }
}

extension RecordingStore {
    var any: StoredEntry? { entries.values.first }
}

extension StoredEntry {
    /// Returns a copy without the last body byte, or without the tags.
    func damaged(keepingBody: Bool) -> StoredEntry {
        var head = entry.head
        let body = entry.body
        let bodyCount = keepingBody ? body.count : max(0, body.count - 1)
        head.rawCount = bodyCount
        head.storedCount = bodyCount
        if keepingBody { head.tagsCount = 0 }
        let tags = keepingBody ? [] : entry.withTags { [UInt8]($0) }
        let damaged = entry.withKey { key in
            entry.withMetadata { metadata in
                tags.withUnsafeBytes { tags in
                    Entry(head: head, key: key, tags: tags, metadata: metadata) { target in
                        body[0..<bodyCount].withUnsafeBytes { target.copyMemory(from: $0) }
                    }
                }
            }
        }
        return StoredEntry(damaged)
    }
}
