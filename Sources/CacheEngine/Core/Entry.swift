/// The engine's data for one key: body, key, tags and metadata in one allocation.
///
/// The layout equals that of a record on disk. Storing therefore needs no serialisation, and an
/// uncompressed read writes to its final place (every byte: docs/disk-format.md):
///
///     ┌────────────┬──────┬─────┬──────┬──────────┐
///     │ head, 64 B │ body │ key │ tags │ metadata │
///     └────────────┴──────┴─────┴──────┴──────────┘
///
/// Tags are `(length u16 · bytes)*`. The engine interprets body, key and metadata; this type does
/// not.
///
/// `@unchecked Sendable`: the storage is filled before the entry exists and is read-only
/// afterwards.
package struct Entry: @unchecked Sendable {
    package let storage: ByteStorage

    /// Wraps bytes that have the layout of an entry.
    ///
    /// The disk validates the bytes it reads (`EntryHead.init(decoding:)` and the checksums) before
    /// it calls this initialiser.
    package init(unchecked storage: ByteStorage) { self.storage = storage }

    /// Builds an entry; `fillBody` writes the `head.rawCount` bytes of the body.
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
            assert(
                EntryLayout(trusted: UnsafeRawBufferPointer(bytes)).metadata.upperBound
                    == bytes.count,
                "reads as written"
            )
        }
    }

    /// Builds an entry from a key, tags and metadata in arrays.
    package init(
        head: EntryHead,
        key: [UInt8],
        tags: TagList,
        metadata: [UInt8],
        fillBody: (UnsafeMutableRawBufferPointer) throws -> Void
    ) rethrows {
        self = try key.withUnsafeBytes { key in
            try tags.bytes.withUnsafeBytes { tags in
                try metadata.withUnsafeBytes { metadata in
                    try Entry(
                        head: head,
                        key: key,
                        tags: tags,
                        metadata: metadata,
                        fillBody: fillBody
                    )
                }
            }
        }
    }

    /// The decoded head.
    @inline(__always)
    package var head: EntryHead { EntryHead(trusted: storage.unsafeHead) }

    /// The size of the entry in bytes, including its head.
    package var sizeBytes: Int { layout.metadata.upperBound }

    private var layout: EntryLayout { EntryLayout(trusted: storage.unsafeHead) }

    /// The length of the body in bytes.
    package var bodyCount: Int { layout.body.count }

    /// The body; it shares the entry's bytes.
    package var body: ByteChunk { ByteChunk(storage, layout.body) }

    /// The metadata; it shares the entry's bytes.
    package var metadata: ByteChunk { ByteChunk(storage, layout.metadata) }

    /// Calls `read` with all bytes of the entry, including its head.
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

    /// Whether both entries have the same creation time, metadata and body.
    ///
    /// Numbers of the head that a store writes may differ, for example after one entry was on disk.
    func isCopy(of other: Entry) -> Bool {
        guard storage !== other.storage else { return true }
        return head.createdSeconds == other.head.createdSeconds && bodyCount == other.bodyCount
            && withMetadata { bytes in other.withMetadata { bytes.hasSameBytes(as: $0) } }
            && body.withUnsafeBytes { bytes in
                other.body.withUnsafeBytes { bytes.hasSameBytes(as: $0) }
            }
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
    /// The head of the entry that these bytes hold.
    @inline(__always)
    var unsafeHead: UnsafeRawBufferPointer { unsafeBytes(EntryHead.sizeBytes) }
}

extension Entry {
    /// Whether the entry is in `scope`.
    ///
    /// An index of variants has a class and a time of its own, which say nothing of its variants.
    func isCovered(by scope: RemovalScope) -> Bool {
        switch scope {
        case .everything: return true
        case .tag(var tag):
            return tag.withUTF8 { tag in
                withTags { TagList.contains(UnsafeRawBufferPointer(tag), in: $0) }
            }
        case .storageClass, .storedAfter, .storedBefore:
            if head.flags.contains(.index), !Mutant.removesIndexesByClass.isOn { return false }
            return scope.covers(head.storageClass, createdSeconds: head.createdSeconds)
        }
    }
}
