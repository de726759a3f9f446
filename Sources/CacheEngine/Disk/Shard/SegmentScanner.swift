/// Walks the records of one segment in order, until one does not validate.
struct SegmentScanner {
    private static let windowBytes = 1 << 20

    let volume: Volume
    let file: OpenFile
    let seal: SegmentSeal
    let end: Int
    private var window: [UInt8] = []
    private var windowStart = 0

    init(volume: Volume, file: OpenFile, seal: SegmentSeal, end: Int) {
        self.volume = volume
        self.file = file
        self.seal = seal
        self.end = end
    }

    /// Calls `visit` with each record from `start` on, pads left out; gives the end of the last.
    mutating func scan(from start: Int, _ visit: (CheckedRecord, _ offset: Int) -> Void) -> Int {
        var offset = start
        while let size = recordBytes(at: offset) {
            guard fill(offset, size) else { break }
            let isValid = window.withUnsafeBytes { bytes in
                let part = UnsafeRawBufferPointer(rebasing: bytes[(offset - windowStart)...])
                // The body as well: a write that was cut short must not hide an older copy.
                guard let record = CheckedRecord(part, at: offset, sealedBy: seal),
                    record.hasWholeBody
                else { return false }
                if !record.head.flags.contains(.pad) { visit(record, offset) }
                return true
            }
            guard isValid else { break }
            offset += size
        }
        return offset
    }

    /// What the head at `offset` says, not checked beyond its form; nil when it can be no record.
    private mutating func recordBytes(at offset: Int) -> Int? {
        guard offset + EntryHead.sizeBytes <= end, fill(offset, EntryHead.sizeBytes) else {
            return nil
        }
        return window.withUnsafeBytes { bytes in
            let part = UnsafeRawBufferPointer(rebasing: bytes[(offset - windowStart)...])
            guard let head = EntryHead(decoding: part), offset + head.recordBytes <= end else {
                return nil
            }
            return head.recordBytes
        }
    }

    /// Makes the window hold `count` bytes from `offset` on; false when the file has them not.
    private mutating func fill(_ offset: Int, _ count: Int) -> Bool {
        if offset >= windowStart, offset + count <= windowStart + window.count { return true }
        let wanted = min(max(count, Self.windowBytes), end - offset)
        guard wanted >= count else { return false }
        var got = 0
        var fresh = [UInt8](repeating: 0, count: wanted)
        let file = file
        fresh.withUnsafeMutableBytes { bytes in
            got = (try? volume.read(file, into: bytes, at: offset)) ?? 0
        }
        fresh.removeLast(wanted - got)
        (window, windowStart) = (fresh, offset)
        return got >= count
    }
}
