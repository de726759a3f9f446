/// Ties a record to one place in one life of one segment: the start value of its header CRC.
///
/// A record copied from another store, segment, life or offset does not validate.
package struct SegmentSeal: Hashable, Sendable {
    package let base: UInt32
    package init(base: UInt32) { self.base = base }

    /// The header CRC of the record in `bytes`, which lies at `offset` of the segment.
    ///
    /// Covers the head without the CRC itself, then key, tags and metadata; the body has its own.
    package func headerCRC(of bytes: UnsafeRawBufferPointer, storedCount: Int, at offset: Int)
        -> UInt32
    {
        let bodyEnd = EntryHead.sizeBytes + storedCount
        var crc = base.crc32c(adding: UInt64(offset))
        crc = bytes.crc32c(0..<8, from: crc)
        crc = bytes.crc32c(12..<EntryHead.sizeBytes, from: crc)
        return bytes.crc32c(bodyEnd..<bytes.count, from: crc)
    }
}
