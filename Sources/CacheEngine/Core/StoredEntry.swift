/// An entry on its way into or out of a store.
public struct StoredEntry: Sendable {
    package let entry: Entry
    /// In a box, so that an entry without one is copied by copying two words.
    private let detached: DetachedBody?

    package init(_ entry: Entry, detachedBody: (any BodyReader)? = nil) {
        self.entry = entry
        detached = detachedBody.map(DetachedBody.init)
    }

    /// The body when it is not part of the entry's own bytes but read piece by piece.
    public var detachedBody: (any BodyReader)? { detached?.reader }

    private final class DetachedBody: Sendable {
        let reader: any BodyReader

        init(_ reader: any BodyReader) { self.reader = reader }
    }
}

/// A stored body that is read piece by piece.
public protocol BodyReader: Sendable {
    /// The body's length in bytes.
    var count: Int { get }
    /// The bytes at `range`, or a first part of them: at least one byte unless `range` is empty.
    func read(_ range: Range<Int>) async throws -> ByteChunk
}

extension StoredEntry {
    /// Seconds since 1970 at which the entry may be dropped.
    public var expiresSeconds: Int64 { Int64(entry.head.expiresSeconds) }
    /// Seconds since 1970 at which it was stored.
    public var createdSeconds: Int64 { Int64(entry.head.createdSeconds) }
    /// Its storage class.
    public var storageClass: StorageClass { entry.head.storageClass }
    /// Whether its bytes must not leave memory.
    public var isMemoryOnly: Bool { entry.head.isMemoryOnly }
    /// The bytes it occupies, a detached body aside.
    public var sizeBytes: Int { entry.sizeBytes }
    /// Whether `scope` concerns it.
    public func isCovered(by scope: RemovalScope) -> Bool { entry.isCovered(by: scope) }
    /// Its key.
    public var key: StoreKey {
        StoreKey(bytes: entry.withKey { [UInt8]($0) }, hash: entry.head.hash)
    }
    /// Its tags.
    public var tags: [String] {
        var tags: [String] = []
        entry.withTags { bytes in
            TagList.forEach(in: bytes) { tags.append(String(decoding: $0, as: UTF8.self)) }
        }
        return tags
    }

    /// The same entry as this process files it; nil when it is another key's.
    package func filed(under key: StoreKey) -> StoredEntry? {
        let isSame = entry.withKey { bytes in
            key.bytes.withUnsafeBytes { $0.hasSameBytes(as: bytes) }
        }
        guard isSame else { return nil }
        var head = entry.head
        guard head.hash != key.hash else { return self }
        head.hash = key.hash
        let storage = ByteStorage.make(count: entry.sizeBytes) { bytes in
            entry.withBytes { bytes.copyMemory(from: $0) }
            head.encode(into: bytes)
        }
        return StoredEntry(Entry(unchecked: storage), detachedBody: detachedBody)
    }

    /// The whole entry as bytes that `init(serialized:)` takes back, for a store that keeps bytes.
    ///
    /// Nil when the body is detached.
    public var serialized: [UInt8]? {
        guard detachedBody == nil else { return nil }
        return entry.withBytes { [UInt8]($0) }
    }

    /// Reads back what `serialized` gave; nil for anything else.
    public init?(serialized bytes: [UInt8]) {
        let entry = bytes.withUnsafeBytes { bytes -> Entry? in
            guard let head = EntryHead(decoding: bytes), head.codec == .raw,
                head.entrySizeBytes == bytes.count
            else { return nil }
            return Entry(
                unchecked: ByteStorage.make(count: bytes.count) { $0.copyMemory(from: bytes) }
            )
        }
        guard let entry else { return nil }
        self.init(entry)
    }
}
