/// The first 4 KiB of a segment, which identify the current life of the file.
///
///      0 magic u32 "CES1" · version u32
///      8 store id 16 B
///     24 shard u32 · slot u32
///     32 generation u64                   increases with every segment the shard opens
///     40 nonce u64                        random: bytes of the file's earlier lives never validate
///     48 oldest generation u64            segments below it are dead, whatever their files contain
///     56 created u64                      seconds since 1970
///     64 first sequence u64
///     72 isRetired u32 · CRC u32          over bytes 0 ..< 76; zeros up to 2048
///   2048 a second copy of the same      zeros up to 4096
///
/// There are two copies because a segment whose header is lost loses its removals with it.
///
/// A retired segment holds no records. Its header is kept for its numbers, so that they never
/// decrease.
package struct SegmentHeader: Hashable, Sendable {
    package static let sizeBytes = 4_096
    private static let copyOffset = 2_048
    package static let magic: UInt32 = 0x3153_4543  // "CES1"
    package static let version: UInt32 = 1

    package var storeID: KeyHash
    package var shard: Int
    package var slot: Int
    package var generation: UInt64
    package var nonce: UInt64
    package var oldestGeneration: UInt64
    package var createdSeconds: UInt64
    package var firstSequence: UInt64
    package var isRetired = false

    package init(
        storeID: KeyHash,
        shard: Int,
        slot: Int,
        generation: UInt64,
        nonce: UInt64,
        oldestGeneration: UInt64,
        createdSeconds: UInt64,
        firstSequence: UInt64
    ) {
        self.storeID = storeID
        self.shard = shard
        self.slot = slot
        self.generation = generation
        self.nonce = nonce
        self.oldestGeneration = oldestGeneration
        self.createdSeconds = createdSeconds
        self.firstSequence = firstSequence
    }

    /// Reads a header from arbitrary bytes; `nil` if `encode` could not have made one of its two
    /// copies.
    package init?(decoding bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.sizeBytes else { return nil }
        let copy = UnsafeRawBufferPointer(rebasing: bytes[Self.copyOffset..<Self.sizeBytes])
        guard let header = Self(copy: bytes) ?? Self(copy: copy) else { return nil }
        self = header
    }

    private init?(copy bytes: UnsafeRawBufferPointer) {
        guard
            bytes.littleEndian(at: 0, as: UInt32.self) == Self.magic,
            bytes.littleEndian(at: 4, as: UInt32.self) == Self.version,
            bytes.littleEndian(at: 72, as: UInt32.self) <= 1,
            bytes.littleEndian(at: 76, as: UInt32.self) == bytes.crc32c(upTo: 76)
        else { return nil }
        storeID = KeyHash(
            placement: bytes.littleEndian(at: 8),
            identity: bytes.littleEndian(at: 16)
        )
        shard = Int(bytes.littleEndian(at: 24, as: UInt32.self))
        slot = Int(bytes.littleEndian(at: 28, as: UInt32.self))
        generation = bytes.littleEndian(at: 32)
        nonce = bytes.littleEndian(at: 40)
        oldestGeneration = bytes.littleEndian(at: 48)
        createdSeconds = bytes.littleEndian(at: 56)
        firstSequence = bytes.littleEndian(at: 64)
        isRetired = bytes.littleEndian(at: 72, as: UInt32.self) == 1
    }

    /// Writes the header over the first 4 KiB of `bytes`.
    package func encode(into bytes: UnsafeMutableRawBufferPointer) {
        let page = UnsafeMutableRawBufferPointer(rebasing: bytes[..<Self.sizeBytes])
        page.initializeMemory(as: UInt8.self, repeating: 0)
        page.setLittleEndian(Self.magic, at: 0)
        page.setLittleEndian(Self.version, at: 4)
        page.setLittleEndian(storeID.placement, at: 8)
        page.setLittleEndian(storeID.identity, at: 16)
        page.setLittleEndian(UInt32(shard), at: 24)
        page.setLittleEndian(UInt32(slot), at: 28)
        page.setLittleEndian(generation, at: 32)
        page.setLittleEndian(nonce, at: 40)
        page.setLittleEndian(oldestGeneration, at: 48)
        page.setLittleEndian(createdSeconds, at: 56)
        page.setLittleEndian(firstSequence, at: 64)
        page.setLittleEndian(UInt32(isRetired ? 1 : 0), at: 72)
        page.setLittleEndian(UnsafeRawBufferPointer(page).crc32c(upTo: 76), at: 76)
        page.copy(UnsafeRawBufferPointer(rebasing: page[..<80]), at: Self.copyOffset)
        assert(Self(decoding: UnsafeRawBufferPointer(page)) == self, "reads as written")
    }

    /// The seal of every record of this segment.
    package var seal: SegmentSeal {
        var crc: UInt32 = 0
        crc = crc.crc32c(adding: storeID.placement).crc32c(adding: storeID.identity)
        crc = crc.crc32c(adding: UInt64(shard) << 32 | UInt64(slot))
        crc = crc.crc32c(adding: generation).crc32c(adding: nonce)
        return SegmentSeal(base: crc)
    }
}

/// The start value of a record's header CRC, which ties the record to one place in one life of one
/// segment.
///
/// A record copied from another store, segment, life or offset does not validate.
package struct SegmentSeal: Hashable, Sendable {
    package let base: UInt32
    package init(base: UInt32) { self.base = base }

    /// Returns the header CRC of the head in `bytes`, which lies at `offset` of the segment.
    ///
    /// It covers the head without the CRC itself, and with it the CRCs of the other parts: 64 bytes
    /// tell a record from bytes that look like one.
    package func headerCRC(of bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt32 {
        var crc = base.crc32c(adding: Mutant.ignoresOffsetInSeal.isOn ? 0 : UInt64(offset))
        crc = bytes.crc32c(0..<EntryHead.Offset.headerCRC, from: crc)
        return bytes.crc32c(EntryHead.Offset.bodyCRC..<EntryHead.sizeBytes, from: crc)
    }
}
