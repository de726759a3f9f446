/// What the engine holds for one key: body, key, tags and metadata in one allocation.
///
/// The bytes are laid out as the disk's record is, so that storing needs no serialisation and an
/// uncompressed read lands in its final place (every byte: docs/disk-format.md):
///
///     ┌────────────┬──────┬─────┬──────┬──────────┐
///     │ head, 64 B │ body │ key │ tags │ metadata │
///     └────────────┴──────┴─────┴──────┴──────────┘
///
/// The core never looks into body, key or metadata; what they mean is the engine's business. Tags
/// are `(length u16 · bytes)*`.
///
/// `@unchecked Sendable`: the storage is filled before the entry exists and read-only afterwards.
package struct Entry: @unchecked Sendable {
    package let storage: ByteStorage

    /// Wraps bytes that are known to be laid out as an entry.
    ///
    /// The disk checks what it read (`EntryHead.init(decoding:)` and the checksums) before it
    /// calls this.
    package init(unchecked storage: ByteStorage) { self.storage = storage }

    /// Builds an entry; `fillBody` writes its `head.rawCount` body bytes.
    package init(
        head: EntryHead,
        key: UnsafeRawBufferPointer,
        tags: UnsafeRawBufferPointer,
        metadata: UnsafeRawBufferPointer,
        fillBody: (UnsafeMutableRawBufferPointer) throws -> Void
    ) rethrows {
        precondition(head.keyCount == key.count && head.tagsCount == tags.count)
        precondition(head.metadataCount == metadata.count)
        storage = try ByteStorage.make(count: head.entrySizeBytes) { bytes in
            head.encode(into: bytes)
            let bodyEnd = EntryHead.sizeBytes + head.rawCount
            try fillBody(.init(rebasing: bytes[EntryHead.sizeBytes..<bodyEnd]))
            bytes.copy(key, at: bodyEnd)
            bytes.copy(tags, at: bodyEnd + key.count)
            bytes.copy(metadata, at: bodyEnd + key.count + tags.count)
        }
    }

    /// The numbers in front.
    package var head: EntryHead { EntryHead(trusted: storage.unsafeHead) }

    /// The part of the key's hash that chooses shards.
    package var placement: UInt64 { storage.unsafeHead.littleEndian(at: 24) }

    /// The bytes the entry occupies, head included.
    package var sizeBytes: Int { layout.metadata.upperBound }

    private var layout: EntryLayout { EntryLayout(trusted: storage.unsafeHead) }

    /// How long the body is.
    package var bodyCount: Int { layout.body.count }

    /// The body, sharing the entry's bytes.
    package var body: ByteChunk { ByteChunk(storage, layout.body) }

    /// The metadata, sharing the entry's bytes.
    package var metadata: ByteChunk { ByteChunk(storage, layout.metadata) }

    /// Calls `read` with all of the entry's bytes, the head included.
    package func withBytes<Result>(
        _ read: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result { try withPart(0..<sizeBytes, read) }

    /// Calls `read` with the key.
    package func withKey<Result>(
        _ read: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result { try withPart(layout.key, read) }

    /// Calls `read` with the encoded tags.
    package func withTags<Result>(
        _ read: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result { try withPart(layout.tags, read) }

    /// Calls `read` with the metadata.
    package func withMetadata<Result>(
        _ read: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result { try withPart(layout.metadata, read) }

    /// Whether both say the same of the same body, also where one of them has been on disk since.
    func isCopy(of other: Entry) -> Bool {
        guard storage !== other.storage else { return true }
        return head.createdSeconds == other.head.createdSeconds && bodyCount == other.bodyCount
            && withMetadata { bytes in other.withMetadata { bytes.hasSameBytes(as: $0) } }
    }

    private func withPart<Result>(
        _ range: Range<Int>,
        _ read: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        try withExtendedLifetime(storage) {
            try read(.init(rebasing: storage.unsafeBytes(range.upperBound)[range.lowerBound...]))
        }
    }
}

extension ByteStorage {
    /// The head of the entry that the bytes are.
    @inline(__always)
    var unsafeHead: UnsafeRawBufferPointer { unsafeBytes(EntryHead.sizeBytes) }
}
