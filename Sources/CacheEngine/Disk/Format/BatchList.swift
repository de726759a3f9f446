/// The list in the last record of a batch, which describes the other records of the batch.
///
/// It repeats their kinds and key hashes, so that a damaged record cannot hide a removal or the key
/// it concerned.
///
///      0 where the batch begins u32          in units of 64 bytes
///      4 items u32 · smallest sequence u64
///     16 items, as a segment's footer has them; zeros up to the end of the page
package struct BatchList: Hashable, Sendable {
    private static let headBytes = 16

    /// The offset of the batch in its segment.
    package var start: Int
    package var items: [FooterItem]

    package init(start: Int, items: [FooterItem]) {
        self.start = start
        self.items = items
    }

    /// The size of the smallest record that holds a list of `itemCount` items.
    package static func recordBytes(itemCount: Int) -> Int {
        let bytes = EntryHead.sizeBytes + headBytes + itemCount * FooterItem.sizeBytes
        return (bytes + recordUnitBytes - 1) & ~(recordUnitBytes - 1)
    }

    /// Writes the list over the front of `bytes`, which must be zero.
    package func encode(into bytes: UnsafeMutableRawBufferPointer) {
        let sequenceMin = items.map(\.sequence).min() ?? 0
        bytes.setLittleEndian(UInt32(start / recordUnitBytes), at: 0)
        bytes.setLittleEndian(UInt32(items.count), at: 4)
        bytes.setLittleEndian(sequenceMin, at: 8)
        for (number, item) in items.enumerated() {
            let position = Self.headBytes + number * FooterItem.sizeBytes
            item.encode(into: bytes, at: position, sequenceMin: sequenceMin)
        }
        assert(items.isEmpty || Self(trusted: .init(bytes)) == self, "reads as written")
    }

    /// Reads the body of a checked record; `nil` if it holds no list.
    package init?(trusted bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headBytes else { return nil }
        let count = Int(bytes.littleEndian(at: 4, as: UInt32.self))
        guard count > 0, count <= (bytes.count - Self.headBytes) / FooterItem.sizeBytes else {
            return nil
        }
        start = Int(bytes.littleEndian(at: 0, as: UInt32.self)) * recordUnitBytes
        let sequenceMin = bytes.littleEndian(at: 8, as: UInt64.self)
        items = (0..<count).map { number in
            FooterItem(
                trusted: bytes,
                at: Self.headBytes + number * FooterItem.sizeBytes,
                sequenceMin: sequenceMin
            )
        }
    }
}
