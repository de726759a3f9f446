extension EntryHead {
    /// The size of the whole record on disk, padding included.
    package var recordBytes: Int {
        (recordPartsBytes + recordUnitBytes - 1) & ~(recordUnitBytes - 1)
    }

    /// The size of the record's parts: head, stored body, key, tags, metadata.
    package var recordPartsBytes: Int {
        Self.sizeBytes + storedCount + keyCount + tagsCount + metadataCount
    }

    /// The maximum size of a record of this entry.
    package var recordBytesMax: Int { entrySizeBytes + recordUnitBytes }

    /// Whether the entry may have been written into a log, with any configuration.
    ///
    /// A raw body has as many bytes as its record; a compressed one may claim any number, and a read
    /// allocates them.
    private var fitsALog: Bool {
        codec == .raw || recordBytesMax <= RecordPlace.recordBytesMax || Mutant.believesAnySize.isOn
    }

    /// Reads the head of a record at `offset`; `nil` unless this life of the segment has a record
    /// there.
    init?(_ bytes: UnsafeRawBufferPointer, at offset: Int, sealedBy seal: SegmentSeal) {
        guard let head = EntryHead(decoding: bytes), head.fitsALog,
            seal.headerCRC(of: bytes, at: offset) == head.headerCRC || Mutant.skipsHeadChecksum.isOn
        else { return nil }
        self = head
    }

    /// Writes the head in front of the other parts, which are in `record`, with the checksums of all.
    mutating func seal(
        _ record: UnsafeMutableRawBufferPointer,
        at offset: Int,
        by seal: SegmentSeal
    ) {
        let bytes = UnsafeRawBufferPointer(record)
        let bodyEnd = Self.sizeBytes + storedCount
        bodyCRC = bytes.crc32c(Self.sizeBytes..<bodyEnd, from: 0)
        tailCRC = bytes.crc32c(bodyEnd..<recordPartsBytes, from: 0)
        encode(into: record)
        headerCRC = seal.headerCRC(of: bytes, at: offset)
        encode(into: record)
    }
}

/// A record whose head, key, tags and metadata have valid checksums, in bytes that the caller owns.
package struct CheckedRecord {
    package let head: EntryHead
    private let bytes: UnsafeRawBufferPointer

    /// Checks the record at the start of `bytes`, which lies at `offset` of the segment.
    ///
    /// Returns `nil` if the record is damaged, cut off, or belongs to another place.
    package init?(
        _ bytes: UnsafeRawBufferPointer,
        at offset: Int,
        sealedBy seal: SegmentSeal
    ) {
        guard let head = EntryHead(bytes, at: offset, sealedBy: seal),
            head.recordPartsBytes <= bytes.count
        else { return nil }
        self.head = head
        self.bytes = UnsafeRawBufferPointer(rebasing: bytes[..<head.recordPartsBytes])
        guard tail.crc32c() == head.tailCRC || Mutant.skipsTailChecksum.isOn else { return nil }
    }

    /// Whether the stored body has the checksum in the head.
    package var hasWholeBody: Bool {
        storedBody.crc32c() == head.bodyCRC || Mutant.skipsBodyChecksum.isOn
    }

    package var storedBody: UnsafeRawBufferPointer {
        .init(rebasing: bytes[EntryHead.sizeBytes..<EntryHead.sizeBytes + head.storedCount])
    }

    package var key: UnsafeRawBufferPointer {
        let start = EntryHead.sizeBytes + head.storedCount
        return .init(rebasing: bytes[start..<start + head.keyCount])
    }

    package var tags: UnsafeRawBufferPointer {
        let start = EntryHead.sizeBytes + head.storedCount + head.keyCount
        return .init(rebasing: bytes[start..<start + head.tagsCount])
    }

    package var metadata: UnsafeRawBufferPointer {
        .init(rebasing: bytes[(bytes.count - head.metadataCount)...])
    }

    /// Key, tags and metadata as they are stored.
    package var tail: UnsafeRawBufferPointer {
        .init(rebasing: bytes[(EntryHead.sizeBytes + head.storedCount)...])
    }

    /// Makes the entry for memory, with its body decompressed.
    ///
    /// Returns `nil` if the body does not decompress to its stated length.
    package func makeEntry() -> Entry? {
        var memoryHead = head
        memoryHead.codec = .raw
        memoryHead.storedCount = head.rawCount
        var isWhole = false
        let storage = ByteStorage.make(count: memoryHead.entrySizeBytes) { destination in
            memoryHead.encode(into: destination)
            let bodyEnd = EntryHead.sizeBytes + head.rawCount
            isWhole = BodyCodec.decompress(
                storedBody,
                head.codec,
                into: .init(rebasing: destination[EntryHead.sizeBytes..<bodyEnd])
            )
            destination.copy(tail, at: bodyEnd)
            assert(bodyEnd + tail.count == destination.count, "the parts are the whole entry")
        }
        return isWhole ? Entry(unchecked: storage) : nil
    }
}
