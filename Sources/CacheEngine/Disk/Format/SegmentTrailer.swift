/// The last 4 KiB of a sealed segment: the position and summary of its footer.
///
///      0 magic u32 "CET1" · version u32
///      8 generation u64 · nonce u64
///     24 item count u32 · footer CRC u32
///     32 footer offset u64 · records end u64
///     48 smallest sequence u64 · largest sequence u64
///     64 all ones u32, 0 without items · isTorn u32   1: never append after the records
///     72 reserved u32 (0) · CRC u32            over bytes 0 ..< 76; zeros up to 4096
package struct SegmentTrailer: Hashable, Sendable {
    package static let sizeBytes = 4_096
    package static let magic: UInt32 = 0x3154_4543  // "CET1"
    package static let version: UInt32 = 1

    package var generation: UInt64
    package var nonce: UInt64
    package var itemCount: Int
    package var footerCRC: UInt32
    package var footerOffset: Int
    package var recordsEnd: Int
    package var sequenceMin: UInt64
    package var sequenceMax: UInt64
    package var isTorn: Bool

    package init(
        generation: UInt64,
        nonce: UInt64,
        itemCount: Int,
        footerCRC: UInt32,
        footerOffset: Int,
        recordsEnd: Int,
        sequenceMin: UInt64,
        sequenceMax: UInt64,
        isTorn: Bool
    ) {
        self.generation = generation
        self.nonce = nonce
        self.itemCount = itemCount
        self.footerCRC = footerCRC
        self.footerOffset = footerOffset
        self.recordsEnd = recordsEnd
        self.sequenceMin = sequenceMin
        self.sequenceMax = sequenceMax
        self.isTorn = isTorn
    }

    /// Reads a trailer from arbitrary bytes; `nil` if it does not fit `header`'s segment.
    package init?(
        decoding bytes: UnsafeRawBufferPointer,
        of header: SegmentHeader,
        segmentBytes: Int
    ) {
        guard bytes.count >= Self.sizeBytes,
            bytes.littleEndian(at: 0, as: UInt32.self) == Self.magic,
            bytes.littleEndian(at: 4, as: UInt32.self) == Self.version,
            bytes.littleEndian(at: 8, as: UInt64.self) == header.generation,
            bytes.littleEndian(at: 16, as: UInt64.self) == header.nonce,
            bytes.littleEndian(at: 72, as: UInt32.self) == 0,
            bytes.littleEndian(at: 76, as: UInt32.self) == bytes.crc32c(upTo: 76)
        else { return nil }
        generation = header.generation
        nonce = header.nonce
        itemCount = Int(bytes.littleEndian(at: 24, as: UInt32.self))
        footerCRC = bytes.littleEndian(at: 28)
        footerOffset = Int(truncatingIfNeeded: bytes.littleEndian(at: 32, as: UInt64.self))
        recordsEnd = Int(truncatingIfNeeded: bytes.littleEndian(at: 40, as: UInt64.self))
        sequenceMin = bytes.littleEndian(at: 48)
        sequenceMax = bytes.littleEndian(at: 56)
        isTorn = bytes.littleEndian(at: 68, as: UInt32.self) != 0
        guard
            footerOffset == Self.footerOffset(itemCount: itemCount, segmentBytes: segmentBytes),
            recordsEnd >= SegmentHeader.sizeBytes, recordsEnd <= footerOffset,
            sequenceMax >= sequenceMin
        else { return nil }
    }

    package func encode(into bytes: UnsafeMutableRawBufferPointer) {
        assert(recordsEnd <= footerOffset, "the records end before the footer")
        assert(footerOffset.isMultiple(of: pageBytes), "a footer begins with a page")
        assert(sequenceMin <= sequenceMax)
        let page = UnsafeMutableRawBufferPointer(rebasing: bytes[..<Self.sizeBytes])
        page.initializeMemory(as: UInt8.self, repeating: 0)
        page.setLittleEndian(Self.magic, at: 0)
        page.setLittleEndian(Self.version, at: 4)
        page.setLittleEndian(generation, at: 8)
        page.setLittleEndian(nonce, at: 16)
        page.setLittleEndian(UInt32(itemCount), at: 24)
        page.setLittleEndian(footerCRC, at: 28)
        page.setLittleEndian(UInt64(footerOffset), at: 32)
        page.setLittleEndian(UInt64(recordsEnd), at: 40)
        page.setLittleEndian(sequenceMin, at: 48)
        page.setLittleEndian(sequenceMax, at: 56)
        page.setLittleEndian(itemCount > 0 ? UInt32.max : 0, at: 64)
        page.setLittleEndian(UInt32(isTorn ? 1 : 0), at: 68)
        page.setLittleEndian(UnsafeRawBufferPointer(page).crc32c(upTo: 76), at: 76)
    }

    /// The offset of a footer of `itemCount` items: the last page boundary that leaves room for it.
    package static func footerOffset(itemCount: Int, segmentBytes: Int) -> Int {
        (segmentBytes - sizeBytes - itemCount * FooterItem.sizeBytes) & ~(pageBytes - 1)
    }
}

/// The unit in which batches are written.
package let pageBytes = 4_096
/// The unit in which records are placed and measured.
package let recordUnitBytes = 64
