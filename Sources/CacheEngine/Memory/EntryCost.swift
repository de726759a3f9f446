extension Entry {
    /// What the entry takes of the capacity: its allocation, as the allocator rounds it.
    ///
    /// Counted by what the head declares, so that a replay can charge for bodies it does not hold.
    var chargeBytes: Int { Self.allocationBytes(head.entrySizeBytes) }

    /// What an entry with an empty key and so many bytes of body is charged.
    package static func chargeBytes(bodyCount: Int) -> Int {
        allocationBytes(EntryHead.sizeBytes + bodyCount)
    }

    /// The bytes an allocation of `count` entry bytes really takes.
    static func allocationBytes(_ count: Int) -> Int {
        let object = count + objectHeaderBytes
        guard object < pageRoundedMin else {
            return (object + 16 + pageBytes - 1) / pageBytes * pageBytes
        }
        return max(32, (object + 8 + 15) / 16 * 16)
    }

    /// An entry that declares a body it does not hold, for replaying traces at their real sizes.
    ///
    /// Nothing may read its body or key: the store itself does not, as the key is empty.
    package static func declaringBody(
        hash: KeyHash,
        bodyCount: Int
    ) -> Entry {
        let head = EntryHead(
            hash: hash,
            createdSeconds: 0,
            expiresSeconds: EntryHead.neverExpires,
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
    /// From here on allocators hand out whole pages.
    private static let pageRoundedMin = 128 << 10
    private static let pageBytes = 4096
}
