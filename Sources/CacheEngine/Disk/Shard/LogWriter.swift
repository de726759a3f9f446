/// The open segment of a shard and the batch being put together for it.
///
/// The lane's own: nothing here is shared.
struct LogWriter {
    /// A record in the batch that is not written yet.
    struct Placed {
        let item: WriteItem
        let head: EntryHead
        /// Where it lies in the batch.
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
    }

    var segment: OpenSegment?
    var batch = BatchBuffer()
    var placed: [Placed] = []

    /// Whether a record of that size still fits behind the batch, with its footer item and padding.
    func hasRoom(recordBytes: Int, batchBytes: Int, segmentBytes: Int) -> Bool {
        guard let segment else { return false }
        let footer = SegmentTrailer.footerOffset(
            itemCount: segment.items.count + placed.count + 1,
            segmentBytes: segmentBytes
        )
        let end = segment.position + batchBytes + recordBytes
        return (end + pageBytes - 1) & ~(pageBytes - 1) <= footer
    }
}

/// What a record in a batch is for.
enum WriteItem {
    case node(WriteQueue.Taken)
    /// A record written again, unless its entry has left `from` meanwhile.
    case reinsertion(identity: UInt64, from: RecordPlace)
}

/// Bytes on their way to a segment: grows to the largest batch and stays.
///
/// `@unchecked Sendable`: the memory has one owner, this value, which cannot be copied; the actor
/// that holds it is the only one to use it.
final class BatchBuffer: @unchecked Sendable {
    private(set) var bytes: UnsafeMutableRawBufferPointer
    var count = 0

    init() { bytes = .allocate(byteCount: 512 << 10, alignment: pageBytes) }

    deinit { bytes.deallocate() }

    /// The next `count` bytes, zeroed up to the padding; valid until more is asked for.
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
        return .init(rebasing: bytes[self.count..<self.count + count])
    }

    /// Drops the first `count` bytes.
    func removeFirst(_ removed: Int) {
        guard removed > 0 else { return }
        let rest = count - removed
        bytes.baseAddress.map { base in
            base.copyMemory(from: base + removed, byteCount: rest)
        }
        count = rest
    }
}
