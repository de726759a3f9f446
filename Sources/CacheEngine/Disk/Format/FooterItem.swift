/// One record as the footer of its segment lists it, so that recovery reads no bodies.
///
///      0 placement u64 · identity u64
///     16 offset u32                        in units of 64 bytes
///     20 record size u24 · kind u8         in units of 64 bytes
///     24 all ones u32
///     28 sequence u32                      above the smallest one of the segment
package struct FooterItem: Hashable, Sendable {
    package static let sizeBytes = 32
    package static let sizeUnitsMax = (1 << 24) - 1
    /// The largest difference between two sequence numbers that one footer lists.
    static let distanceMax = UInt64(UInt32.max)

    package var hash: KeyHash
    package var offset: Int
    package var recordBytes: Int
    package var flags: EntryHead.Flags
    package var isRaw: Bool
    package var sequence: UInt64

    package init(_ head: EntryHead, offset: Int) {
        hash = head.hash
        self.offset = offset
        recordBytes = head.recordBytes
        flags = head.flags.intersection(Self.listedFlags.union(.index))
        isRaw = head.codec == .raw
        sequence = head.sequence
    }

    /// Reads an item of a footer with a valid checksum.
    package init(trusted bytes: UnsafeRawBufferPointer, at position: Int, sequenceMin: UInt64) {
        hash = KeyHash(
            placement: bytes.littleEndian(at: position),
            identity: bytes.littleEndian(at: position + 8)
        )
        offset = Int(bytes.littleEndian(at: position + 16, as: UInt32.self)) * recordUnitBytes
        let size = bytes.littleEndian(at: position + 20, as: UInt32.self)
        recordBytes = Int(size & 0xFF_FFFF) * recordUnitBytes
        flags = EntryHead.Flags(rawValue: UInt16(size >> 24) & 0xFF)
            .intersection(Self.listedFlags)
        if size >> 24 & Self.indexBit != 0 { flags.insert(.index) }
        isRaw = size >> 24 & Self.rawBit != 0
        let distance = bytes.littleEndian(at: position + 28, as: UInt32.self)
        sequence = sequenceMin &+ UInt64(distance)
    }

    package func encode(
        into bytes: UnsafeMutableRawBufferPointer,
        at position: Int,
        sequenceMin: UInt64
    ) {
        assert(offset.isMultiple(of: recordUnitBytes), "records begin at units")
        assert(recordBytes / recordUnitBytes <= Self.sizeUnitsMax)
        assert(sequence >= sequenceMin)
        let kind =
            UInt32(flags.intersection(Self.listedFlags).rawValue) | (isRaw ? Self.rawBit : 0)
            | (flags.contains(.index) ? Self.indexBit : 0)
        bytes.setLittleEndian(hash.placement, at: position)
        bytes.setLittleEndian(hash.identity, at: position + 8)
        bytes.setLittleEndian(UInt32(offset / recordUnitBytes), at: position + 16)
        bytes.setLittleEndian(UInt32(recordBytes / recordUnitBytes) | kind << 24, at: position + 20)
        bytes.setLittleEndian(UInt32.max, at: position + 24)
        bytes.setLittleEndian(UInt32(truncatingIfNeeded: sequence - sequenceMin), at: position + 28)
        let written = UnsafeRawBufferPointer(bytes)
        assert(
            Self(trusted: written, at: position, sequenceMin: sequenceMin) == self,
            "reads as written"
        )
    }

    /// Whether a segment with that end of its records may have one where the item says.
    ///
    /// Only a forged footer names another place; the first one of the first slot is that of no record.
    func isInside(recordsEnd: Int) -> Bool {
        offset >= SegmentHeader.sizeBytes && recordBytes >= EntryHead.sizeBytes
            && offset + recordBytes <= recordsEnd
    }

    /// The flags stored in the kind byte at their own bits; bit 3 (`.pad` in a head) means a raw
    /// body, and bit 5 (`.memoryOnly`) an index of variants.
    private static let listedFlags: EntryHead.Flags = [
        .tombstone, .purgeRecord, .reinserted, .jumbo, .session, .pinned,
    ]
    private static let rawBit: UInt32 = 1 << 3
    private static let indexBit: UInt32 = 1 << 5
}
