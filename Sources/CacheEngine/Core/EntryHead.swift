/// The 64 bytes in front of every entry, in memory and on disk.
///
///      0 magic u32 · version u8 · codec u8 · flags u16
///      8 headerCRC u32 · bodyCRC u32
///     16 sequence u64
///     24 placement u64 · identity u64
///     40 tail CRC u32 · created u32           seconds since 1970
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

    /// The place of each number, also for code that reads one number alone.
    enum Offset {
        static let magic = 0
        static let version = 4
        static let codec = 5
        static let flags = 6
        static let headerCRC = 8
        static let bodyCRC = 12
        static let sequence = 16
        static let placement = 24
        static let identity = 32
        static let tailCRC = 40
        static let createdSeconds = 44
        /// The counts of key, metadata and tags, in one word.
        static let counts = 48
        static let storedCount = 56
        static let rawCount = 60
    }

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
        /// An index of variants, which leads to responses.
        package static let index = Self(rawValue: 1 << 8)
    }

    package var codec = Codec.raw
    package var flags: Flags = []
    package var headerCRC: UInt32 = 0
    package var bodyCRC: UInt32 = 0
    /// Over key, tags and metadata.
    package var tailCRC: UInt32 = 0
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
    ///
    /// Inlined, so that a reader of one number decodes no others.
    @inline(__always)
    package init(trusted bytes: UnsafeRawBufferPointer) {
        codec = Codec(rawValue: bytes[Offset.codec]) ?? .raw
        flags = Flags(rawValue: bytes.littleEndian(at: Offset.flags))
        headerCRC = bytes.littleEndian(at: Offset.headerCRC)
        bodyCRC = bytes.littleEndian(at: Offset.bodyCRC)
        tailCRC = bytes.littleEndian(at: Offset.tailCRC)
        sequence = bytes.littleEndian(at: Offset.sequence)
        hash = KeyHash(
            placement: bytes.littleEndian(at: Offset.placement),
            identity: bytes.littleEndian(at: Offset.identity)
        )
        createdSeconds = bytes.littleEndian(at: Offset.createdSeconds)
        let counts = bytes.littleEndian(at: Offset.counts, as: UInt64.self)
        keyCount = Int(counts & 0xFF_FFFF)
        metadataCount = Int(counts >> 24 & 0xFF_FFFF)
        tagsCount = Int(counts >> 48)
        storedCount = Int(bytes.littleEndian(at: Offset.storedCount, as: UInt32.self))
        rawCount = Int(bytes.littleEndian(at: Offset.rawCount, as: UInt32.self))
    }

    /// Reads a head from arbitrary bytes; returns `nil` unless `encode` could have written them.
    ///
    /// The disk checks the checksums and whether the record belongs to its place.
    package init?(decoding bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.sizeBytes,
            bytes.littleEndian(at: Offset.magic, as: UInt32.self) == Self.magic,
            bytes[Offset.version] == Self.version, Codec(rawValue: bytes[Offset.codec]) != nil
        else { return nil }
        self.init(trusted: bytes)
        guard codec != .raw || storedCount == rawCount else { return nil }
    }

    package func encode(into bytes: UnsafeMutableRawBufferPointer) {
        precondition(bytes.count >= Self.sizeBytes)
        precondition(keyCount <= Self.keyCountMax && metadataCount <= Self.metadataCountMax)
        precondition(tagsCount <= Self.tagsCountMax)
        precondition(rawCount <= Self.bodyCountMax && storedCount <= Self.bodyCountMax)
        bytes.setLittleEndian(Self.magic, at: Offset.magic)
        bytes[Offset.version] = Self.version
        bytes[Offset.codec] = codec.rawValue
        bytes.setLittleEndian(flags.rawValue, at: Offset.flags)
        bytes.setLittleEndian(headerCRC, at: Offset.headerCRC)
        bytes.setLittleEndian(bodyCRC, at: Offset.bodyCRC)
        bytes.setLittleEndian(sequence, at: Offset.sequence)
        bytes.setLittleEndian(hash.placement, at: Offset.placement)
        bytes.setLittleEndian(hash.identity, at: Offset.identity)
        bytes.setLittleEndian(tailCRC, at: Offset.tailCRC)
        bytes.setLittleEndian(createdSeconds, at: Offset.createdSeconds)
        let counts = UInt64(keyCount) | UInt64(metadataCount) << 24 | UInt64(tagsCount) << 48
        bytes.setLittleEndian(counts, at: Offset.counts)
        bytes.setLittleEndian(UInt32(storedCount), at: Offset.storedCount)
        bytes.setLittleEndian(UInt32(rawCount), at: Offset.rawCount)
        assert(EntryHead(trusted: UnsafeRawBufferPointer(bytes)) == self, "reads as written")
    }
}

extension EntryHead {
    /// Bytes of the whole entry in memory.
    package var entrySizeBytes: Int {
        Self.sizeBytes + rawCount + keyCount + tagsCount + metadataCount
    }

    package var storageClass: StorageClass { flags.storageClass }

    package var isMemoryOnly: Bool { flags.contains(.memoryOnly) }
}

extension EntryHead.Flags {
    package var storageClass: StorageClass {
        if contains(.session) { return .session }
        return contains(.pinned) ? .pinned : .permanent
    }
}

/// The ranges of an entry's parts in memory, from the four counts of its head.
struct EntryLayout {
    private let rawCount: Int
    private let keyCount: Int
    private let tagsCount: Int
    private let metadataCount: Int

    /// Reads a head that this process wrote or validated.
    init(trusted head: UnsafeRawBufferPointer) {
        let counts = head.littleEndian(at: EntryHead.Offset.counts, as: UInt64.self)
        keyCount = Int(counts & 0xFF_FFFF)
        metadataCount = Int(counts >> 24 & 0xFF_FFFF)
        tagsCount = Int(counts >> 48)
        rawCount = Int(head.littleEndian(at: EntryHead.Offset.rawCount, as: UInt32.self))
    }

    var body: Range<Int> { EntryHead.sizeBytes..<EntryHead.sizeBytes + rawCount }
    var key: Range<Int> { body.upperBound..<body.upperBound + keyCount }
    var tags: Range<Int> { key.upperBound..<key.upperBound + tagsCount }
    var metadata: Range<Int> { tags.upperBound..<tags.upperBound + metadataCount }
}
