/// Reads the lines of an encoded field section without allocating.
///
/// The cursor stops at the first line that exceeds the buffer, so any bytes are safe.
/// `FieldSection.init?(decoding:)` decides whether a whole section is valid.
public struct FieldCursor {
    /// The bytes before a line's name: name length u16, value length u32, little-endian.
    public static let lineHeaderBytes = 6

    public struct Line {
        public let name: ByteRun
        public let value: ByteRun
        /// The range of the line's encoding in its section.
        public let extent: Range<Int>

        @inlinable
        init(name: ByteRun, value: ByteRun, extent: Range<Int>) {
            self.name = name
            self.value = value
            self.extent = extent
        }
    }

    @usableFromInline let bytes: UnsafeRawBufferPointer
    @usableFromInline var position = 0

    /// The place of the next line.
    public var offset: Int { position }

    public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// Lends the first value of that name in `lines` to `body`; returns `nil` if no line has that
    /// name.
    public static func withFirst<Result>(
        lowercased name: StaticString,
        in lines: UnsafeRawBufferPointer,
        _ body: (ByteRun) -> Result
    ) -> Result? {
        var cursor = FieldCursor(lines)
        while let line = cursor.next() {
            if line.name.equals(lowercased: name) { return body(line.value) }
        }
        return nil
    }

    /// Calls `visit` with the name and value of each line in `lines`.
    public static func forEachLine(
        in lines: UnsafeRawBufferPointer,
        _ visit: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        var cursor = FieldCursor(lines)
        while let line = cursor.next() { visit(line.name.buffer, line.value.buffer) }
    }

    @inlinable
    public mutating func next() -> Line? {
        let start = position
        let room = bytes.count - start
        guard room >= Self.lineHeaderBytes, let base = bytes.baseAddress else { return nil }
        let nameCount = Int(
            UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt16.self))
        )
        let valueCount = Int(
            UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + 2, as: UInt32.self))
        )
        guard nameCount + valueCount <= room - Self.lineHeaderBytes else { return nil }
        let nameStart = start + Self.lineHeaderBytes
        let valueStart = nameStart + nameCount
        position = valueStart + valueCount
        return Line(
            name: ByteRun(UnsafeRawBufferPointer(start: base + nameStart, count: nameCount)),
            value: ByteRun(UnsafeRawBufferPointer(start: base + valueStart, count: valueCount)),
            extent: start..<position
        )
    }
}
