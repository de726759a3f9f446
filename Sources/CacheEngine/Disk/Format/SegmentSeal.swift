/// The start value of a record's header CRC, which ties the record to one place in one life of one
/// segment.
///
/// A record copied from another store, segment, life or offset does not validate.
package struct SegmentSeal: Hashable, Sendable {
    package let base: UInt32
    package init(base: UInt32) { self.base = base }

    /// Returns the header CRC of the record in `bytes`, which lies at `offset` of the segment.
    ///
    /// It covers the head without the CRC itself, then key, tags and metadata. The body has its own
    /// CRC.
    package func headerCRC(of bytes: UnsafeRawBufferPointer, storedCount: Int, at offset: Int)
        -> UInt32
    {
        let bodyEnd = EntryHead.sizeBytes + storedCount
        var crc = base.crc32c(adding: Mutant.ignoresOffsetInSeal.isOn ? 0 : UInt64(offset))
        crc = bytes.crc32c(0..<8, from: crc)
        crc = bytes.crc32c(12..<EntryHead.sizeBytes, from: crc)
        return bytes.crc32c(bodyEnd..<bytes.count, from: crc)
    }
}
