/// An entry that is passed to or from a store.
public struct StoredEntry: Sendable {
    package let entry: Entry
    /// Boxed, so that a copy of an entry without a detached body copies two words.
    private let detached: DetachedBody?

    package init(_ entry: Entry, detachedBody: (any BodyReader)? = nil) {
        self.entry = entry
        detached = detachedBody.map(DetachedBody.init)
    }

    /// The body, if it is read piece by piece instead of being part of the entry's bytes.
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
    /// Returns the bytes at `range` or a prefix of them, at least one byte unless `range` is empty.
    func read(_ range: Range<Int>) async throws -> ByteChunk
}

extension StoredEntry {
    /// The time when the entry was stored, in seconds since 1970.
    public var createdSeconds: Int64 { Int64(entry.head.createdSeconds) }
    /// The storage class.
    public var storageClass: StorageClass { entry.head.storageClass }
    /// Whether the entry's bytes must not leave memory.
    public var isMemoryOnly: Bool { entry.head.isMemoryOnly }
    /// The size of the entry in bytes, without a detached body.
    public var sizeBytes: Int { entry.sizeBytes }
    /// Whether `scope` includes the entry.
    public func isCovered(by scope: RemovalScope) -> Bool { entry.isCovered(by: scope) }
    /// The key.
    public var key: StoreKey {
        StoreKey(bytes: entry.withKey { [UInt8]($0) }, hash: entry.head.hash)
    }
    /// The tags.
    public var tags: [String] { entry.withTags { TagList.decoded($0) } }

    /// The same entry with this process's hash of `key`; `nil` if the entry has another key.
    package func filed(under key: StoreKey) -> StoredEntry? {
        guard has(key) else { return nil }
        var head = entry.head
        guard head.hash != key.hash else { return self }
        head.hash = key.hash
        return with(head)
    }

    /// The same entry as one that this process stores now under `key`; `nil` if it has another key.
    ///
    /// It keeps its class and its place, and no other mark of the process that it comes from.
    func adopted(under key: StoreKey, sequence: UInt64) -> StoredEntry? {
        guard has(key) else { return nil }
        let old = entry.head
        var head = EntryHead(
            hash: key.hash,
            createdSeconds: old.createdSeconds,
            flags: old.flags.intersection([.session, .pinned, .memoryOnly]),
            keyCount: old.keyCount,
            tagsCount: old.tagsCount,
            metadataCount: old.metadataCount,
            bodyCount: old.rawCount
        )
        head.sequence = sequence
        return with(head)
    }

    /// The same entry with that session number, if it is of the session class.
    ///
    /// The number has the place of the sequence of a record on disk.
    func inSession(_ session: UInt64) -> StoredEntry {
        var head = entry.head
        guard head.storageClass == .session else { return self }
        head.sequence = session
        return with(head)
    }

    /// Whether the entry may be read in that session.
    func isReadable(in session: UInt64) -> Bool {
        let head = entry.head
        return head.storageClass != .session || head.sequence == session
    }

    private func has(_ key: StoreKey) -> Bool {
        entry.withKey { bytes in key.bytes.withUnsafeBytes { $0.hasSameBytes(as: bytes) } }
    }

    private func with(_ head: EntryHead) -> StoredEntry {
        let storage = ByteStorage.make(count: entry.sizeBytes) { bytes in
            entry.withBytes { bytes.copyMemory(from: $0) }
            head.encode(into: bytes)
        }
        return StoredEntry(Entry(unchecked: storage), detachedBody: detachedBody)
    }
}

// MARK: Serialisation

extension StoredEntry {
    /// In front of the entry: magic u32 · CRC-32C u32 of the magic and all bytes after the CRC.
    ///
    /// A different magic means a different version.
    private static let envelopeBytes = 8
    private static let envelopeMagic: UInt32 = 0x3253_4543  // "CES2"

    /// The whole entry as bytes for a store that keeps bytes; `init(serialized:)` reads them back.
    ///
    /// `nil` if the body is detached.
    public var serialized: [UInt8]? {
        guard detachedBody == nil else { return nil }
        let count = Self.envelopeBytes + entry.sizeBytes
        let serialized = [UInt8](unsafeUninitializedCapacity: count) { buffer, filledCount in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            bytes.setLittleEndian(Self.envelopeMagic, at: 0)
            entry.withBytes { bytes.copy($0, at: Self.envelopeBytes) }
            let checksum = Self.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            bytes.setLittleEndian(checksum, at: 4)
            filledCount = count
        }
        assert(StoredEntry(serialized: serialized)?.sizeBytes == sizeBytes, "reads as written")
        return serialized
    }

    /// Reads the bytes of `serialized`.
    ///
    /// Returns `nil` if the bytes are damaged, truncated, of another version, or no entry.
    public init?(serialized bytes: [UInt8]) {
        let entry = bytes.withUnsafeBytes { bytes -> Entry? in
            guard bytes.count > Self.envelopeBytes,
                bytes.littleEndian(at: 0, as: UInt32.self) == Self.envelopeMagic,
                bytes.littleEndian(at: 4, as: UInt32.self) == Self.checksum(bytes)
            else { return nil }
            let bytes = UnsafeRawBufferPointer(rebasing: bytes[Self.envelopeBytes...])
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

    private static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        bytes.crc32c(envelopeBytes..<bytes.count, from: bytes.crc32c(upTo: 4))
    }
}
