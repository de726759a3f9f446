/// Scans the records of one segment in order and skips damaged ones.
///
/// The scan searches for the next valid record no farther than its reach. The list at
/// the end of the batch then identifies the damaged records. A removal counts as if it had been
/// read. For any other record, the key's older records count as removed.
struct SegmentScanner {
    /// The results of the scan.
    struct Findings {
        /// The records in their order, without the lists.
        var items: [FooterItem] = []
        /// The end of the last record.
        var end: Int
        /// The number of places that hold something other than a record but have records after
        /// them.
        var damagedCount = 0
        /// The error that ended the scan.
        var fault: FileFault?
    }

    private static let windowBytes = 1 << 20

    let volume: Volume
    let file: OpenFile
    let seal: SegmentSeal
    /// The maximum end of the records; not beyond the end of the file, once that is known.
    private(set) var limit: Int
    /// How far behind the last record the scan looks for the next one.
    let reach: Int
    private var window: [UInt8] = []
    private var windowStart = 0
    private var findings = Findings(end: 0)

    init(volume: Volume, file: OpenFile, seal: SegmentSeal, limit: Int, reach: Int) {
        self.volume = volume
        self.file = file
        self.seal = seal
        self.limit = limit
        self.reach = reach
    }

    /// Scans from `start` on.
    mutating func scan(from start: Int) -> Findings {
        findings = Findings(end: start)
        var offset = start
        while findings.fault == nil, offset + EntryHead.sizeBytes <= limit,
            offset - findings.end <= reach
        {
            guard let size = visit(offset) else {
                offset += recordUnitBytes
                continue
            }
            if offset > findings.end { findings.damagedCount += 1 }
            offset += size
            findings.end = offset
        }
        return findings
    }

    /// Adds the record at `offset` to the findings and returns its size; `nil` if there is no
    /// record.
    private mutating func visit(_ offset: Int) -> Int? {
        guard let size = recordBytes(at: offset), fill(offset, size) else { return nil }
        let seal = seal
        let found = window.withUnsafeBytes { bytes -> (FooterItem?, BatchList?)? in
            let part = UnsafeRawBufferPointer(rebasing: bytes[(offset - windowStart)...])
            // The body is checked as well: a truncated write must not hide an older copy.
            guard let record = CheckedRecord(part, at: offset, sealedBy: seal),
                record.hasWholeBody, LogNumber.isSound(record.head.sequence)
            else { return nil }
            guard record.head.flags.contains(.pad) else {
                return (FooterItem(record.head, offset: offset), nil)
            }
            guard let list = BatchList(trusted: record.storedBody) else { return (nil, nil) }
            guard list.items.allSatisfy({ LogNumber.isSound($0.sequence) }) else { return nil }
            return (nil, list)
        }
        guard let found else { return nil }
        if let item = found.0 { findings.items.append(item) }
        if let list = found.1 { addMissing(of: list) }
        return size
    }

    /// Adds the items that are in the list but were not found by the scan.
    private mutating func addMissing(of list: BatchList) {
        let before = findings.items.lastIndex { $0.offset < list.start }
        let first = before.map { $0 + 1 } ?? 0
        let batch = findings.items[first...]
        guard batch.count < list.items.count else { return }
        let seen = Set(batch.map(\.offset))
        let missing = list.items.filter { !seen.contains($0.offset) }.map { item in
            var item = item
            // The record's content is unknown, but the key's older records are not the newest.
            if !item.flags.contains(.purgeRecord) { item.flags = .tombstone }
            return item
        }
        let all = (batch + missing).sorted { $0.offset < $1.offset }
        findings.items.replaceSubrange(first..., with: all)
    }

    /// Returns the size of the record at `offset`; `nil` if there is no head of this life.
    ///
    /// Only the 64 bytes of the head are read: a stored body may consist of bytes in the form of
    /// heads, which name any size.
    private mutating func recordBytes(at offset: Int) -> Int? {
        guard fill(offset, EntryHead.sizeBytes) else { return nil }
        return window.withUnsafeBytes { bytes in
            let part = UnsafeRawBufferPointer(rebasing: bytes[(offset - windowStart)...])
            let head = EntryHead(part, at: offset, sealedBy: seal)
            guard let head, offset + head.recordBytes <= limit else { return nil }
            return head.recordBytes
        }
    }

    /// Makes the window hold `count` bytes from `offset` on; returns `false` if the file is too
    /// short.
    private mutating func fill(_ offset: Int, _ count: Int) -> Bool {
        if offset >= windowStart, offset + count <= windowStart + window.count { return true }
        let wanted = min(max(count, Self.windowBytes), limit - offset)
        guard wanted >= count else { return false }
        var got = 0
        var fault: FileFault?
        var fresh = [UInt8](repeating: 0, count: wanted)
        let file = file
        let volume = volume
        fresh.withUnsafeMutableBytes { bytes in
            do throws(FileFault) {
                got = try volume.read(file, into: bytes, at: offset)
            } catch { fault = error }
        }
        // A read error is not the end of the log: the unreadable part may hold anything.
        if let fault { findings.fault = fault }
        if got < wanted { limit = offset + got }
        fresh.removeLast(wanted - got)
        (window, windowStart) = (fresh, offset)
        return got >= count
    }
}
