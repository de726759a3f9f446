/// Reads one record and checks all of it.
struct RecordReader: Sendable {
    enum Outcome {
        case entry(Entry, sequence: UInt64, reference: BodyReference?)
        /// The record is not, or not completely, in the page cache.
        case mustWait
        case damaged
        case failed(FileFault)
    }

    enum Patience { case pageCacheOnly, waits }

    /// The record in a buffer, or the reason why it is not there.
    private enum Filling {
        case record(CheckedRecord)
        case nothing(Outcome)
    }

    /// Larger records are neither read nor decompressed on the caller's thread.
    static let cachedBytesMax = 256 << 10

    let volume: Volume

    func read(_ lease: ReadLease, _ patience: Patience) -> Outcome {
        let wanted = lease.readBytes
        guard wanted >= EntryHead.sizeBytes else { return .damaged }
        guard lease.place.flags.contains(.raw) else {
            return withUnsafeTemporaryAllocation(byteCount: wanted, alignment: 16) { scratch in
                switch fill(scratch, lease, patience) {
                case .record(let record): return Self.entry(of: record) ?? Self.damage(patience)
                case .nothing(let outcome): return outcome
                }
            }
        }
        // The record's bytes may be the entry's: read them to their final place.
        var outcome = Outcome.damaged
        var isEntry = false
        let storage = ByteStorage.make(count: wanted) { buffer in
            switch fill(buffer, lease, patience) {
            case .record(let record) where record.isItsEntry(in: wanted): isEntry = true
            case .record(let record): outcome = Self.entry(of: record) ?? Self.damage(patience)
            case .nothing(let other): outcome = other
            }
        }
        guard isEntry else { return outcome }
        let entry = Entry(unchecked: storage)
        assert(entry.sizeBytes <= wanted, "the entry lies in the bytes that were read")
        return .entry(entry, sequence: entry.head.sequence, reference: nil)
    }

    /// Reads the record into `buffer` and checks it.
    private func fill(
        _ buffer: UnsafeMutableRawBufferPointer,
        _ lease: ReadLease,
        _ patience: Patience
    ) -> Filling {
        let count: Int
        switch patience {
        case .pageCacheOnly:
            let offset = lease.place.offset
            guard let cached = volume.readsCached(lease.file, into: buffer, at: offset) else {
                return .nothing(.mustWait)
            }
            count = cached
        case .waits:
            do throws(FileFault) {
                count = try volume.read(lease.file, into: buffer, at: lease.place.offset)
            } catch { return .nothing(.failed(error)) }
        }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<min(count, buffer.count)])
        // To decompress it may take a millisecond. The head is checked where it is read again.
        if patience == .pageCacheOnly, let head = EntryHead(decoding: bytes),
            head.rawCount > Self.cachedBytesMax, !Mutant.decompressesAnySize.isOn
        {
            return .nothing(.mustWait)
        }
        guard let record = CheckedRecord(lease, bytes) else {
            return .nothing(Self.damage(patience))
        }
        return .record(record)
    }

    /// The outcome for a damaged record; in the page cache it may only be incomplete.
    private static func damage(_ patience: Patience) -> Outcome {
        patience == .pageCacheOnly ? .mustWait : .damaged
    }

    /// Returns `nil` for damage.
    private static func entry(of record: CheckedRecord) -> Outcome? {
        if record.head.flags.contains(.jumbo) {
            guard let reference = BodyReference(decoding: record.storedBody) else { return nil }
            return .entry(
                record.makeEntryWithoutBody(),
                sequence: record.head.sequence,
                reference: reference
            )
        }
        return record.makeEntry().map {
            .entry($0, sequence: record.head.sequence, reference: nil)
        }
    }
}

extension CheckedRecord {
    /// Checks the record of a lease, its body included.
    init?(_ lease: ReadLease, _ bytes: UnsafeRawBufferPointer) {
        self.init(bytes, at: lease.place.offset, sealedBy: lease.seal)
        guard head.hash.identity == lease.identity, hasWholeBody,
            head.flags.isDisjoint(with: [.tombstone, .purgeRecord, .pad])
        else { return nil }
    }

    /// Whether the bytes of the record are those of its entry, and may be kept for it: of the
    /// `count` bytes that were read, those behind the entry are few.
    ///
    /// A record is padded to a whole unit. The memory charges for the entry alone, so what is small
    /// is copied.
    fileprivate func isItsEntry(in count: Int) -> Bool {
        guard head.codec == .raw, !head.flags.contains(.jumbo) else { return false }
        let entryBytes = head.entrySizeBytes
        return count - entryBytes <= entryBytes / Self.keptPaddingShare
            || Mutant.keepsThePadding.isOn
    }

    /// The padding that is kept is at most the entry's size divided by this.
    private static let keptPaddingShare = 64

    /// Makes the entry of a record whose body is in a separate file.
    func makeEntryWithoutBody() -> Entry {
        var head = head
        head.codec = .raw
        head.storedCount = 0
        head.rawCount = 0
        return Entry(head: head, key: key, tags: tags, metadata: metadata) { _ in }
    }
}
