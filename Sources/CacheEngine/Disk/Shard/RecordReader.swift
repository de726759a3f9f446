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

    let volume: Volume

    func read(_ lease: ReadLease, _ patience: Patience) -> Outcome {
        let wanted = lease.readBytes
        guard wanted >= EntryHead.sizeBytes else { return .damaged }
        guard lease.place.flags.contains(.raw) else {
            return withUnsafeTemporaryAllocation(byteCount: wanted, alignment: 16) { scratch in
                fill(scratch, lease, patience) { bytes in
                    guard let record = CheckedRecord(lease, bytes) else { return nil }
                    return Self.entry(of: record)
                }
            }
        }
        // The record's bytes are the entry's: read them to their final place.
        var outcome = Outcome.damaged
        var isEntry = false
        let storage = ByteStorage.make(count: wanted) { buffer in
            outcome = fill(buffer, lease, patience) { bytes in
                guard let record = CheckedRecord(lease, bytes) else { return nil }
                isEntry = record.head.codec == .raw && !record.head.flags.contains(.jumbo)
                return isEntry ? .mustWait : Self.entry(of: record)
            }
        }
        guard isEntry else { return outcome }
        let entry = Entry(unchecked: storage)
        return .entry(entry, sequence: entry.head.sequence, reference: nil)
    }

    /// Fills `buffer` with the record and passes the bytes to `use`, which returns `nil` for
    /// damage.
    private func fill(
        _ buffer: UnsafeMutableRawBufferPointer,
        _ lease: ReadLease,
        _ patience: Patience,
        _ use: (UnsafeRawBufferPointer) -> Outcome?
    ) -> Outcome {
        let count: Int
        switch patience {
        case .pageCacheOnly:
            let offset = lease.place.offset
            guard let cached = volume.readsCached(lease.file, into: buffer, at: offset) else {
                return .mustWait
            }
            count = cached
        case .waits:
            do throws(FileFault) {
                count = try volume.read(lease.file, into: buffer, at: lease.place.offset)
            } catch { return .failed(error) }
        }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<min(count, buffer.count)])
        if let outcome = use(bytes) { return outcome }
        return patience == .pageCacheOnly ? .mustWait : .damaged
    }

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

    /// Makes the entry of a record whose body is in a separate file.
    func makeEntryWithoutBody() -> Entry {
        var head = head
        head.codec = .raw
        head.storedCount = 0
        head.rawCount = 0
        return Entry(head: head, key: key, tags: tags, metadata: metadata) { _ in }
    }
}
