package import CacheEngine

/// Entries whose bytes follow from a number and a version.
///
/// A reader can therefore tell whether an entry is intact and which version it is.
package enum VersionedEntry {
    package static func key(_ number: Int) -> [UInt8] {
        Array("http://example.com/\(number)".utf8)
    }

    package static func storeKey(_ number: Int, _ hasher: KeyHasher) -> StoreKey {
        let key = key(number)
        return StoreKey(bytes: key, hash: key.withUnsafeBytes { hasher.hash($0) })
    }

    /// A body whose every part identifies the version and the entry.
    package static func body(_ number: Int, version: Int, bytes: Int) -> [UInt8] {
        var random = SeededRandom(seed: UInt64(number) << 32 | UInt64(version))
        // Every fourth version is random and cannot be compressed.
        if version > 0, version.isMultiple(of: 4) {
            return self.bytes(bytes) { _ in random.next() }
        }
        let words = (0..<4).map { _ in random.next() }
        return self.bytes(bytes) { words[$0 / 8 % 4] &+ UInt64($0 / 64) }
    }

    package static func make(
        _ number: Int,
        version: Int,
        body: [UInt8],
        tags: TagList = TagList(),
        flags: EntryHead.Flags = [],
        createdSeconds: UInt32,
        hasher: KeyHasher
    ) -> Entry {
        let key = key(number)
        let metadata = Array("version \(version)".utf8)
        let head = EntryHead(
            hash: key.withUnsafeBytes { hasher.hash($0) },
            createdSeconds: createdSeconds,
            flags: flags,
            keyCount: key.count,
            tagsCount: tags.bytes.count,
            metadataCount: metadata.count,
            bodyCount: body.count
        )
        return Entry(head: head, key: key, tags: tags, metadata: metadata) { target in
            target.copyBytes(from: body)
        }
    }

    /// The result of reading an entry.
    package enum Reading: Hashable, Sendable {
        case version(Int)
        /// The bytes match no version.
        case wrong
        /// The body could not be read.
        case unreadable
    }

    package static func check(_ stored: StoredEntry, is number: Int) async -> Reading {
        let words = stored.entry.metadata.text.split(separator: " ")
        guard let version = words.last.flatMap({ Int($0) }), stored.key.bytes == key(number) else {
            return .wrong
        }
        var body = stored.entry.body.array
        if let detached = stored.detachedBody {
            body = []
            while body.count < detached.count {
                guard let more = try? await detached.read(body.count..<detached.count) else {
                    return .unreadable
                }
                guard !more.isEmpty else { return .wrong }
                body += more.array
            }
        }
        let expected = self.body(number, version: version, bytes: body.count)
        return body == expected ? .version(version) : .wrong
    }

    private static func bytes(_ count: Int, _ word: (Int) -> UInt64) -> [UInt8] {
        let words = (0..<(count + 7) / 8).map(word)
        return words.withUnsafeBytes { Array($0.prefix(count)) }
    }
}
