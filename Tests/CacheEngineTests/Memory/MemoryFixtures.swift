import CacheTestSupport

@testable import CacheEngine

/// Entries for the memory tests; the body repeats a number, so that a torn body is detected.
enum MemoryFixtures {
    static let hasher = KeyHasher(seed: KeyHash(placement: 0x5EED, identity: 0xFEED))

    static func entry(
        _ key: String,
        version: UInt64 = 0,
        bodyCount: Int = 100,
        createdSeconds: UInt32 = 0,
        sequence: UInt64 = 0,
        flags: EntryHead.Flags = [],
        tags: [String] = []
    ) -> Entry {
        let list = TagList(tags) ?? TagList()
        let keyBytes = Array(key.utf8)
        return keyBytes.withUnsafeBytes { key in
            var head = EntryHead(
                hash: hasher.hash(key),
                createdSeconds: createdSeconds,
                flags: flags,
                keyCount: key.count,
                tagsCount: list.bytes.count,
                metadataCount: 8,
                bodyCount: bodyCount
            )
            head.sequence = sequence
            return withUnsafeBytes(of: version) { version in
                list.bytes.withUnsafeBytes { tags in
                    Entry(head: head, key: key, tags: tags, metadata: version) { body in
                        for index in body.indices { body[index] = version[index % 8] }
                    }
                }
            }
        }
    }

    /// The version that the entry was made with; `nil` if its body is torn.
    static func version(of entry: Entry) -> UInt64? {
        let version = entry.withMetadata { $0.loadUnaligned(as: UInt64.self) }
        return withUnsafeBytes(of: version) { version in
            entry.body.withUnsafeBytes { body in
                body.indices.allSatisfy { body[$0] == version[$0 % 8] }
            }
        } ? version : nil
    }
}

extension MemoryTier {
    /// Removes the entries in `scope` without suspending.
    @discardableResult
    func removeAtOnce(in scope: RemovalScope) -> RemovalCount {
        var sweep = ScopeSweep([scope], of: shards)
        while !sweep.isDone { sweep.advance() }
        return sweep.finish()[0]
    }

    func look(_ key: String) -> Entry? {
        var key = key
        return key.withUTF8 { utf8 in
            let bytes = UnsafeRawBufferPointer(utf8)
            return entry(for: MemoryFixtures.hasher.hash(bytes), key: bytes)
        }
    }

    @discardableResult
    func removeKey(_ key: String) -> Entry? {
        var key = key
        return key.withUTF8 { utf8 in
            let bytes = UnsafeRawBufferPointer(utf8)
            return remove(MemoryFixtures.hasher.hash(bytes), key: bytes)
        }
    }
}
