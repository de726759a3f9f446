/// Everything an entry is made of, but its body.
struct EntryBlueprint: Sendable {
    var key: RequestKey
    var metadata: [UInt8]
    var tags = TagList()
    var storageClass = StorageClass.permanent
    var place = StoragePlace.everywhere
    var createdSeconds: Int64

    func head(bodyCount: Int) -> EntryHead {
        var flags: EntryHead.Flags = []
        if storageClass == .session { flags.insert(.session) }
        if storageClass == .pinned { flags.insert(.pinned) }
        if place == .memoryOnly { flags.insert(.memoryOnly) }
        return EntryHead(
            hash: key.hash,
            createdSeconds: UInt32(clamping: createdSeconds),
            expiresSeconds: EntryHead.neverExpires,
            flags: flags,
            keyCount: key.bytes.count,
            tagsCount: tags.bytes.count,
            metadataCount: metadata.count,
            bodyCount: bodyCount
        )
    }

    /// Whether the parts fit into an entry's head.
    var isEncodable: Bool {
        key.bytes.count <= EntryHead.keyCountMax && metadata.count <= EntryHead.metadataCountMax
    }

    /// The entry with the bytes of `pieces` as its body.
    func entry(body pieces: [ByteChunk]) -> Entry {
        let count = pieces.reduce(0) { $0 + $1.count }
        return key.bytes.withUnsafeBytes { key in
            tags.bytes.withUnsafeBytes { tags in
                metadata.withUnsafeBytes { metadata in
                    Entry(
                        head: head(bodyCount: count),
                        key: key,
                        tags: tags,
                        metadata: metadata
                    ) { target in
                        var offset = 0
                        for piece in pieces {
                            piece.withUnsafeBytes { target.copy($0, at: offset) }
                            offset += piece.count
                        }
                    }
                }
            }
        }
    }
}

extension EntryBlueprint {
    /// The blueprint of an entry that exists, with other metadata.
    init(_ entry: Entry, metadata: [UInt8]) {
        let head = entry.head
        self.init(
            key: RequestKey(bytes: entry.withKey { [UInt8]($0) }, hash: head.hash),
            metadata: metadata,
            tags: entry.withTags { TagList(encoded: $0) },
            storageClass: head.storageClass,
            place: head.isMemoryOnly ? .memoryOnly : .everywhere,
            createdSeconds: Int64(head.createdSeconds)
        )
    }
}
