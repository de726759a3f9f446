/// The layout of a multipart/byteranges body: its delimiters and its length (RFC 9110 §14.6).
public struct MultipartByteranges: Hashable, Sendable {
    public let boundary: String
    public let partType: String?
    public let bodySize: Int
    public let ranges: [Range<Int>]

    /// Describes a body of these ranges.
    ///
    /// `boundary` consists of letters and digits and must not occur in the body. `partType` is the
    /// Content-Type of the representation; each part repeats it.
    public init(boundary: String, partType: String?, bodySize: Int, ranges: [Range<Int>]) {
        precondition(!boundary.isEmpty && boundary.utf8.count <= 70)
        self.boundary = boundary
        self.partType = partType
        self.bodySize = bodySize
        self.ranges = ranges
    }

    public var contentType: String { "multipart/byteranges; boundary=\(boundary)" }

    /// The delimiter and fields in front of the part at `index`.
    public func head(ofPart index: Int) -> String {
        var head = index == 0 ? "" : "\r\n"
        head += "--\(boundary)\r\n"
        if let partType { head += "Content-Type: \(partType)\r\n" }
        let range = ContentRange(range: ranges[index], bodySize: bodySize)
        return head + "Content-Range: \(range.text)\r\n\r\n"
    }

    public var tail: String { "\r\n--\(boundary)--\r\n" }

    public var contentLength: Int {
        var length = tail.utf8.count
        for index in ranges.indices {
            length += head(ofPart: index).utf8.count + ranges[index].count
        }
        return length
    }
}
