import HTTPCaching

/// A copy of an entry as the shared store keeps it: bytes that every machine can check and read.
///
///      0 magic u32 · CRC-32C u32 of all bytes after it
///      8 position u64                    of the fleet's purges, before the entry was fetched
///     16 published i64, milliseconds     in the time of the fleet
///     24 stored i64, seconds             in the time of the machine that stored it
///     32 log, 16 bytes                   the identity of the log that the position belongs to
///     48 raw count u32 · codec u8 · 0 u24
///     56 the entry, compressed if that makes it smaller
///
/// Another layout or codec, also of the entry, is another version, with another magic and other
/// names. Checksums find damage; they are no signature.
package struct SharedRecord: Sendable {
    package var entry: StoredEntry
    package var position: UInt64
    package var publishedMilliseconds: Int64
    package var storedSeconds: Int64
    package var log: [UInt8]

    /// The version in the names of records: machines of two versions do not see each other's.
    package static let version = "2"
    package static let logBytes = 16
    /// The largest entry that a record holds.
    package static let entryBytesMax = 1 << 20
    private static let magic: UInt32 = 0x3246_4543  // "CEF2"
    private static let headBytes = 56

    package init(
        _ entry: StoredEntry,
        position: UInt64,
        publishedMilliseconds: Int64,
        storedSeconds: Int64,
        log: [UInt8]
    ) {
        precondition(log.count == Self.logBytes)
        self.entry = entry
        self.position = position
        self.publishedMilliseconds = publishedMilliseconds
        self.storedSeconds = storedSeconds
        self.log = log
    }

    /// The record as bytes; `nil` if the entry is too large or its body is detached.
    package var encoded: [UInt8]? {
        guard entry.detachedBody == nil, entry.sizeBytes <= Self.entryBytesMax else { return nil }
        let room = Self.headBytes + BodyCodec.storedCountMax(rawCount: entry.sizeBytes)
        let written = [UInt8](unsafeUninitializedCapacity: room) { buffer, filledCount in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            bytes.setLittleEndian(Self.magic, at: 0)
            bytes.setLittleEndian(position, at: 8)
            bytes.setLittleEndian(publishedMilliseconds, at: 16)
            bytes.setLittleEndian(storedSeconds, at: 24)
            log.withUnsafeBytes { bytes.copy($0, at: 32) }
            bytes.setLittleEndian(UInt32(entry.sizeBytes), at: 48)
            let (codec, count) = entry.entry.withBytes {
                BodyCodec.compress($0, into: .init(rebasing: bytes[Self.headBytes...]))
            }
            bytes.setLittleEndian(UInt32(codec.rawValue), at: 52)
            filledCount = Self.headBytes + count
            assert(filledCount <= room, "room for the worst case")
            let checksum = UnsafeRawBufferPointer(bytes).crc32c(8..<filledCount, from: 0)
            bytes.setLittleEndian(checksum, at: 4)
        }
        assert(Self(written).map(isSame) ?? false, "reads as written")
        return written
    }

    private func isSame(_ other: SharedRecord) -> Bool {
        position == other.position && publishedMilliseconds == other.publishedMilliseconds
            && storedSeconds == other.storedSeconds && log == other.log
            && entry.entry.head == other.entry.entry.head
            && entry.entry.isCopy(of: other.entry.entry)
    }

    /// Reads bytes that `encoded` wrote; `nil` for any other.
    package init?(_ bytes: [UInt8]) {
        let read = bytes.withUnsafeBytes { bytes -> SharedRecord? in
            guard bytes.count > Self.headBytes,
                bytes.littleEndian(at: 0, as: UInt32.self) == Self.magic,
                bytes.littleEndian(at: 4, as: UInt32.self)
                    == bytes.crc32c(8..<bytes.count, from: 0),
                let code = UInt8(exactly: bytes.littleEndian(at: 52, as: UInt32.self)),
                let codec = EntryHead.Codec(rawValue: code)
            else { return nil }
            let count = Int(bytes.littleEndian(at: 48, as: UInt32.self))
            let stored = UnsafeRawBufferPointer(rebasing: bytes[Self.headBytes...])
            guard count <= Self.entryBytesMax,
                let entry = Self.entry(stored, codec, count: count)
            else { return nil }
            return SharedRecord(
                entry,
                position: bytes.littleEndian(at: 8),
                publishedMilliseconds: bytes.littleEndian(at: 16),
                storedSeconds: bytes.littleEndian(at: 24),
                log: Array(bytes[32..<48])
            )
        }
        guard let read else { return nil }
        self = read
    }

    private static func entry(
        _ stored: UnsafeRawBufferPointer,
        _ codec: EntryHead.Codec,
        count: Int
    ) -> StoredEntry? {
        guard count >= EntryHead.sizeBytes else { return nil }
        var isWhole = false
        let storage = ByteStorage.make(count: count) { bytes in
            isWhole = BodyCodec.decompress(stored, codec, into: bytes)
        }
        guard isWhole else { return nil }
        let entry = Entry(unchecked: storage)
        let head = entry.withBytes { EntryHead(decoding: $0) }
        guard let head, head.codec == .raw, head.entrySizeBytes == count else { return nil }
        return StoredEntry(entry)
    }
}

// MARK: - In the time of this machine

extension SharedRecord {
    /// A record that was published further than this in the future is damaged, or a clock is wrong.
    private static let futureMillisecondsMax: Int64 = 60_000

    /// The entry with the times of this machine; `nil` if it is no entry of this version, or was
    /// published in the future.
    ///
    /// The ages of entries are counted by the clock of the machine that stored them, which may
    /// differ from this one's.
    package func entry(nowSeconds: Int64, fleetMilliseconds now: Int64) -> StoredEntry? {
        let (passed, overflows) = now.subtractingReportingOverflow(publishedMilliseconds)
        guard !overflows, passed > -Self.futureMillisecondsMax, passed < .max - 1_000 else {
            return nil
        }
        let residence = max(0, passed + 999) / 1_000
        let (then, isEarly) = nowSeconds.subtractingReportingOverflow(residence)
        let (shift, isFar) = then.subtractingReportingOverflow(storedSeconds)
        guard !isEarly, !isFar else { return nil }
        // The clocks agree, as far as whole seconds can tell.
        guard shift != 0, shift != -1 else { return entry }
        if let index = VariantIndex(entry.entry) {
            return index.shifted(entry.entry, bySeconds: shift)
        }
        guard let stored = StoredResponse(entry) else { return nil }
        return stored.shifted(bySeconds: shift)
    }
}

extension VariantIndex {
    /// The entry of this index with the time of its roll by a clock that is `seconds` ahead.
    fileprivate func shifted(_ entry: Entry, bySeconds seconds: Int64) -> StoredEntry {
        guard let roll = VariantRoll(entry)?.shifted(bySeconds: seconds) else {
            return StoredEntry(entry)
        }
        let blueprint = EntryBlueprint(entry, metadata: metadata(roll))
        return StoredEntry(
            blueprint.makeEntry(body: EmptyCollection(), sequence: entry.head.sequence)
        )
    }
}

extension StoredResponse {
    /// The same response with its times by a clock that is `seconds` ahead; `nil` if they cannot be
    /// expressed.
    fileprivate func shifted(bySeconds seconds: Int64) -> StoredEntry? {
        var facts = facts
        let (time, overflows) = facts.responseTimeSeconds.addingReportingOverflow(seconds)
        guard !overflows else { return nil }
        facts.responseTimeSeconds = time
        var blueprint = EntryBuilder(renewing: self, facts: facts).blueprint
        let (created, isFar) = blueprint.createdSeconds.addingReportingOverflow(seconds)
        guard !isFar else { return nil }
        blueprint.createdSeconds = created
        guard blueprint.isEncodable(bodyCount: entry.bodyCount) else { return nil }
        return StoredEntry(
            blueprint.makeEntry(
                body: CollectionOfOne(entry.body),
                sequence: entry.head.sequence
            )
        )
    }
}
