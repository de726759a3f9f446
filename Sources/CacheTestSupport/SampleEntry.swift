import CacheEngine

/// An entry in the form in which a check stores it and compares it with the store's result.
struct SampleEntry: Hashable {
    let name: String
    let body: [UInt8]
    var metadata: [UInt8] = [1, 2, 3]
    var tags: [String] = []
    var storageClass = StorageClass.permanent
    var createdSeconds: UInt32 = 1_700_000_000

    init(
        key: String,
        body: [UInt8],
        tags: [String] = [],
        storageClass: StorageClass = .permanent,
        createdSeconds: UInt32 = 1_700_000_000
    ) {
        name = key
        self.body = body
        self.tags = tags
        self.storageClass = storageClass
        self.createdSeconds = createdSeconds
    }

    /// Reads an entry that a store returned.
    init(_ stored: StoredEntry) async throws {
        let body = stored.detachedBody.map { BodyStream($0) } ?? BodyStream(stored.entry.body)
        name = String(decoding: stored.key.bytes, as: UTF8.self)
        self.body = try await body.collect().array
        metadata = stored.entry.metadata.array
        tags = stored.tags
        storageClass = stored.storageClass
        createdSeconds = UInt32(stored.createdSeconds)
    }

    /// All samples use one seed, because a store sees the hashes of one process.
    private static let hasher = KeyHasher(seed: KeyHash(placement: 17, identity: 23))

    var key: StoreKey {
        let bytes = [UInt8](name.utf8)
        return StoreKey(bytes: bytes, hash: bytes.withUnsafeBytes { Self.hasher.hash($0) })
    }

    var entry: StoredEntry {
        var flags: EntryHead.Flags = []
        if storageClass == .session { flags.insert(.session) }
        if storageClass == .pinned { flags.insert(.pinned) }
        let key = key
        let tags = TagList(tags) ?? TagList()
        let head = EntryHead(
            hash: key.hash,
            createdSeconds: createdSeconds,
            flags: flags,
            keyCount: key.bytes.count,
            tagsCount: tags.bytes.count,
            metadataCount: metadata.count,
            bodyCount: body.count
        )
        let entry = Entry(head: head, key: key.bytes, tags: tags, metadata: metadata) { target in
            body.withUnsafeBytes { target.copyMemory(from: $0) }
        }
        return StoredEntry(entry)
    }
}
