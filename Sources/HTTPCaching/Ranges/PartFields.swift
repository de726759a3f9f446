/// Makes the fields of a part from those of a whole response, in one pass.
///
/// Content-Range and Content-Length of the part stand where the response had them; a field that it
/// did not have follows the others, Content-Range first. Content-Digest is left out: it is that of
/// the whole content (RFC 9530 §2).
public struct PartFields {
    private let range: ContentRange
    private let bodyCount: Int
    private var section = FieldSection()
    private var hasRange = false
    private var hasLength = false

    /// Reserves room for `linesCount` bytes of lines beside those of the part.
    public init(_ range: Range<Int>, of bodySize: Int, reserving linesCount: Int) {
        self.range = ContentRange(range: range, bodySize: bodySize)
        bodyCount = range.count
        section.reserveCapacity(linesCount + Self.ownBytesMax)
    }

    /// Adds lines of the response, as `FieldSection` encodes them.
    public mutating func append(_ lines: UnsafeRawBufferPointer) {
        var cursor = FieldCursor(lines)
        /// The start of the lines that are kept and not copied yet.
        var start = 0
        while let line = cursor.next() {
            let isRange = line.name.equals(lowercased: "content-range")
            let isDigest = line.name.equals(lowercased: "content-digest")
            guard isRange || isDigest || line.name.equals(lowercased: "content-length") else {
                continue
            }
            section.append(trusted: .init(rebasing: lines[start..<line.extent.lowerBound]))
            if isRange { appendRange() } else if !isDigest { appendLength() }
            start = line.extent.upperBound
        }
        section.append(trusted: .init(rebasing: lines[start...]))
    }

    /// The fields of the part.
    public consuming func finish() -> FieldSection {
        appendRange()
        appendLength()
        return section
    }

    private mutating func appendRange() {
        guard !hasRange else { return }
        hasRange = true
        range.withText { _ = section.append(name: ByteRun("Content-Range"), value: $0) }
    }

    private mutating func appendLength() {
        guard !hasLength else { return }
        hasLength = true
        DecimalText.withText(of: bodyCount) {
            _ = section.append(name: ByteRun("Content-Length"), value: $0)
        }
    }

    private static let ownBytesMax =
        FieldSection.lineBytes(around: "Content-Range") + ContentRange.bytesMax
        + FieldSection.lineBytes(around: "Content-Length") + DecimalText.bytesMax
}
