/// The 64 bytes in front of every entry, in memory and on disk.
///
///      0 magic u32 · version u8 · codec u8 · flags u16
///      8 headerCRC u32 · bodyCRC u32
///     16 sequence u64
///     24 placement u64 · identity u64
///     40 all ones u32 · created u32           seconds since 1970
///     48 key count u24 · metadata count u24 · tags count u16
///     56 stored count u32 · raw count u32     body bytes on disk, and uncompressed
package struct EntryHead: Hashable, Sendable {
    package static let sizeBytes = 64
    package static let magic: UInt32 = 0x3152_4543  // "CER1"
    package static let version: UInt8 = 1
    package static let keyCountMax = (1 << 24) - 1
    package static let metadataCountMax = (1 << 24) - 1
    package static let tagsCountMax = (1 << 16) - 1
    package static let bodyCountMax = Int(UInt32.max)
    /// The last second that a head can hold, in 2106; later times are clamped to it.
    package static let secondsMax = UInt32.max - 1
    /// Four bytes that mean nothing.
    private static let reserved = UInt32.max

    /// A clock's seconds in the form of a head.
    @inline(__always)
    package static func seconds(_ seconds: Int64) -> UInt32 {
        min(UInt32(clamping: seconds), secondsMax)
    }

    /// The encoding of the body on disk; in memory it is always `.raw`.
    package enum Codec: UInt8, Sendable {
        case raw = 0
        case lz4 = 1
        case lz4Blocks = 2
    }

    /// The kind of the record, and the storage class and place of its entry.
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let tombstone = Self(rawValue: 1 << 0)
        package static let purgeRecord = Self(rawValue: 1 << 1)
        package static let reinserted = Self(rawValue: 1 << 2)
        package static let pad = Self(rawValue: 1 << 3)
        package static let jumbo = Self(rawValue: 1 << 4)
        package static let memoryOnly = Self(rawValue: 1 << 5)
        package static let session = Self(rawValue: 1 << 6)
        package static let pinned = Self(rawValue: 1 << 7)
    }

    package var codec = Codec.raw
    package var flags: Flags = []
    package var headerCRC: UInt32 = 0
    package var bodyCRC: UInt32 = 0
    package var sequence: UInt64 = 0
    package var hash: KeyHash
    package var createdSeconds: UInt32 = 0
    package var keyCount: Int
    package var metadataCount: Int
    package var tagsCount: Int
    package var storedCount: Int
    package var rawCount: Int

    /// The head of a new entry in memory.
    package init(
        hash: KeyHash,
        createdSeconds: UInt32,
        flags: Flags = [],
        keyCount: Int,
        tagsCount: Int,
        metadataCount: Int,
        bodyCount: Int
    ) {
        self.hash = hash
        self.createdSeconds = createdSeconds
        self.flags = flags
        self.keyCount = keyCount
        self.tagsCount = tagsCount
        self.metadataCount = metadataCount
        storedCount = bodyCount
        rawCount = bodyCount
    }

    /// Reads a head that this process wrote or validated.
    package init(trusted bytes: UnsafeRawBufferPointer) {
        codec = Codec(rawValue: bytes[5]) ?? .raw
        flags = Flags(rawValue: bytes.littleEndian(at: 6))
        headerCRC = bytes.littleEndian(at: 8)
        bodyCRC = bytes.littleEndian(at: 12)
        sequence = bytes.littleEndian(at: 16)
        hash = KeyHash(
            placement: bytes.littleEndian(at: 24),
            identity: bytes.littleEndian(at: 32)
        )
        createdSeconds = bytes.littleEndian(at: 44)
        let counts = bytes.littleEndian(at: 48, as: UInt64.self)
        keyCount = Int(counts & 0xFF_FFFF)
        metadataCount = Int(counts >> 24 & 0xFF_FFFF)
        tagsCount = Int(counts >> 48)
        storedCount = Int(bytes.littleEndian(at: 56, as: UInt32.self))
        rawCount = Int(bytes.littleEndian(at: 60, as: UInt32.self))
    }

    /// Reads a head from arbitrary bytes; returns `nil` unless `encode` could have written them.
    ///
    /// The disk checks the checksums and whether the record belongs to its place.
    package init?(decoding bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.sizeBytes,
            bytes.littleEndian(at: 0, as: UInt32.self) == Self.magic,
            bytes[4] == Self.version, Codec(rawValue: bytes[5]) != nil,
            bytes.littleEndian(at: 40, as: UInt32.self) == Self.reserved
        else { return nil }
        self.init(trusted: bytes)
        guard codec != .raw || storedCount == rawCount else { return nil }
    }

    package func encode(into bytes: UnsafeMutableRawBufferPointer) {
        precondition(bytes.count >= Self.sizeBytes)
        precondition(keyCount <= Self.keyCountMax && metadataCount <= Self.metadataCountMax)
        precondition(tagsCount <= Self.tagsCountMax)
        precondition(rawCount <= Self.bodyCountMax && storedCount <= Self.bodyCountMax)
        bytes.setLittleEndian(Self.magic, at: 0)
        bytes[4] = Self.version
        bytes[5] = codec.rawValue
        bytes.setLittleEndian(flags.rawValue, at: 6)
        bytes.setLittleEndian(headerCRC, at: 8)
        bytes.setLittleEndian(bodyCRC, at: 12)
        bytes.setLittleEndian(sequence, at: 16)
        bytes.setLittleEndian(hash.placement, at: 24)
        bytes.setLittleEndian(hash.identity, at: 32)
        bytes.setLittleEndian(Self.reserved, at: 40)
        bytes.setLittleEndian(createdSeconds, at: 44)
        let counts = UInt64(keyCount) | UInt64(metadataCount) << 24 | UInt64(tagsCount) << 48
        bytes.setLittleEndian(counts, at: 48)
        bytes.setLittleEndian(UInt32(storedCount), at: 56)
        bytes.setLittleEndian(UInt32(rawCount), at: 60)
        assert(EntryHead(trusted: UnsafeRawBufferPointer(bytes)) == self, "reads as written")
    }
}

extension EntryHead {
    /// Bytes of the whole entry in memory.
    package var entrySizeBytes: Int {
        Self.sizeBytes + rawCount + keyCount + tagsCount + metadataCount
    }

    package var storageClass: StorageClass {
        if flags.contains(.session) { return .session }
        return flags.contains(.pinned) ? .pinned : .permanent
    }

    package var isMemoryOnly: Bool { flags.contains(.memoryOnly) }
}

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
