/// The layout of a multipart/byteranges body (RFC 9110 §14.6): the text between the parts, and how
/// long the whole is.
package struct MultipartByteranges: Hashable, Sendable {
    package let boundary: String
    package let partType: String?
    package let bodySize: Int
    package let ranges: [Range<Int>]

    /// `boundary` is letters and digits that the caller knows not to occur in the body; `partType` is
    /// the Content-Type of the representation, repeated in each part.
    package init(boundary: String, partType: String?, bodySize: Int, ranges: [Range<Int>]) {
        precondition(!boundary.isEmpty && boundary.utf8.count <= 70)
        self.boundary = boundary
        self.partType = partType
        self.bodySize = bodySize
        self.ranges = ranges
    }

    package var contentType: String { "multipart/byteranges; boundary=\(boundary)" }

    /// What stands before the bytes of the part at `index`.
    package func head(ofPart index: Int) -> String {
        var head = index == 0 ? "" : "\r\n"
        head += "--\(boundary)\r\n"
        if let partType { head += "Content-Type: \(partType)\r\n" }
        let range = ContentRange(range: ranges[index], bodySize: bodySize)
        return head + "Content-Range: \(range.text)\r\n\r\n"
    }

    package var tail: String { "\r\n--\(boundary)--\r\n" }

    package var contentLength: Int {
        var length = tail.utf8.count
        for index in ranges.indices {
            length += head(ofPart: index).utf8.count + ranges[index].count
        }
        return length
    }
}
