/// The ranges of an entry's parts in memory, from the four counts of its head.
struct EntryLayout {
    private let rawCount: Int
    private let keyCount: Int
    private let tagsCount: Int
    private let metadataCount: Int

    /// Reads a head that this process wrote or validated.
    init(trusted head: UnsafeRawBufferPointer) {
        let counts = head.littleEndian(at: 48, as: UInt64.self)
        keyCount = Int(counts & 0xFF_FFFF)
        metadataCount = Int(counts >> 24 & 0xFF_FFFF)
        tagsCount = Int(counts >> 48)
        rawCount = Int(head.littleEndian(at: 60, as: UInt32.self))
    }

    var body: Range<Int> { EntryHead.sizeBytes..<EntryHead.sizeBytes + rawCount }
    var key: Range<Int> { body.upperBound..<body.upperBound + keyCount }
    var tags: Range<Int> { key.upperBound..<key.upperBound + tagsCount }
    var metadata: Range<Int> { tags.upperBound..<tags.upperBound + metadataCount }
}
