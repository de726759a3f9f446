/// The open segment of a shard, and the batch that is being assembled for it.
///
/// Only the lane uses it; nothing here is shared.
struct LogWriter {
    /// A record in the batch that is not written yet.
    struct Placed {
        let item: WriteItem
        let head: EntryHead
        /// The offset of the record in the batch.
        let batchOffset: Int
        var body: JumboFile?
    }

    struct OpenSegment {
        let slot: Int
        let header: SegmentHeader
        let seal: SegmentSeal
        let file: OpenFile
        var position: Int
        var items: [FooterItem] = []
        var isSynchronized = true
        /// Whether a synchronisation failed: another one could succeed although pages are lost.
        var isDoubted = false
    }

    var segment: OpenSegment?
    /// Closed segments whose records the device has not confirmed, until they are sealed or
    /// reclaimed.
    var doubted: [OpenSegment] = []
    var batch = BatchBuffer()
    var placed: [Placed] = []
    /// The room that a reclaim leaves for the record that the open segment was opened for.
    var awaitedBytes = 0

    /// Whether a record of this size fits after the batch, with its footer item, list and padding.
    func hasRoom(recordBytes: Int, segmentBytes: Int) -> Bool {
        guard let segment else { return false }
        let footer = SegmentTrailer.footerOffset(
            itemCount: segment.items.count + placed.count + 1,
            segmentBytes: segmentBytes
        )
        let list = BatchList.recordBytes(itemCount: placed.count + 1)
        let end = segment.position + batch.count + recordBytes + list
        return (end + pageBytes - 1) & ~(pageBytes - 1) <= footer
    }
}

/// The origin of a record in a batch.
enum WriteItem {
    case node(WriteQueue.Taken)
    /// A record that is written again, unless its entry has left `from` meanwhile.
    case reinsertion(identity: UInt64, from: RecordPlace)
}

/// The buffer of a batch; it grows to the largest batch and keeps that size.
///
/// `@unchecked Sendable`: the memory has one owner, this object, and only the actor that holds it
/// uses it.
final class BatchBuffer: @unchecked Sendable {
    private(set) var bytes: UnsafeMutableRawBufferPointer
    var count = 0

    init() { bytes = .allocate(byteCount: 512 << 10, alignment: pageBytes) }

    deinit { bytes.deallocate() }

    /// Returns the next `count` bytes; they stay valid until the next call.
    func room(for count: Int) -> UnsafeMutableRawBufferPointer {
        let needed = self.count + count + 2 * pageBytes
        if needed > bytes.count {
            let larger = UnsafeMutableRawBufferPointer.allocate(
                byteCount: max(needed, bytes.count * 2),
                alignment: pageBytes
            )
            larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<self.count]))
            bytes.deallocate()
            bytes = larger
        }
        assert(self.count + count <= bytes.count)
        return .init(rebasing: bytes[self.count..<self.count + count])
    }
}
