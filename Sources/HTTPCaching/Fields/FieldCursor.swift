/// Walks the lines of an encoded field section without allocating.
///
/// It stops at the first line that does not fit, so it is safe on any bytes; whether a whole section
/// is sound is what `FieldSection.init?(decoding:)` decides.
package struct FieldCursor {
    /// Bytes before a line's name: its length as u16, the value's as u32, little-endian.
    package static let lineHeaderBytes = 6

    package struct Line {
        package let name: ByteRun
        package let value: ByteRun
        /// Where the line's encoding starts and ends in its section.
        package let extent: Range<Int>
    }

    private let bytes: UnsafeRawBufferPointer
    package private(set) var offset = 0

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    package mutating func next() -> Line? {
        let start = offset
        let room = bytes.count - start
        guard room >= Self.lineHeaderBytes else { return nil }
        let nameCount = Int(
            UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt16.self))
        )
        let valueCount = Int(
            UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + 2, as: UInt32.self))
        )
        guard nameCount + valueCount <= room - Self.lineHeaderBytes else { return nil }
        let nameStart = start + Self.lineHeaderBytes
        let valueStart = nameStart + nameCount
        offset = valueStart + valueCount
        let run = ByteRun(bytes)
        return Line(
            name: run[nameStart..<valueStart],
            value: run[valueStart..<offset],
            extent: start..<offset
        )
    }
}
