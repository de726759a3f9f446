extension Entry {
    /// The entry's share of the capacity: its allocation, as the allocator rounds it.
    ///
    /// The size comes from the head, so that a replay can charge for a body that it does not hold.
    var chargeBytes: Int { Self.allocationBytes(head.entrySizeBytes) }

    /// The charge of an entry with an empty key and a body of `bodyCount` bytes.
    package static func chargeBytes(bodyCount: Int) -> Int {
        allocationBytes(EntryHead.sizeBytes + bodyCount)
    }

    /// The bytes that the allocator uses for `count` bytes of entry.
    static func allocationBytes(_ count: Int) -> Int {
        let object = count + objectHeaderBytes
        guard object < pageRoundedMin else {
            return (object + 16 + allocatorPageBytes - 1) / allocatorPageBytes * allocatorPageBytes
        }
        return max(32, (object + 8 + 15) / 16 * 16)
    }

    /// An entry that declares a body without holding it, for replaying traces at their real sizes.
    ///
    /// Its body must not be read. The store compares keys, but this key is empty.
    package static func declaringBody(
        hash: KeyHash,
        bodyCount: Int
    ) -> Entry {
        let head = EntryHead(
            hash: hash,
            createdSeconds: 0,
            keyCount: 0,
            tagsCount: 0,
            metadataCount: 0,
            bodyCount: bodyCount
        )
        return Entry(
            unchecked: ByteStorage.make(count: EntryHead.sizeBytes) { head.encode(into: $0) }
        )
    }

    private static let objectHeaderBytes = 16
    /// Allocators hand out whole pages from this size on.
    private static let pageRoundedMin = 128 << 10
    private static let allocatorPageBytes = 4096
}
