package import CacheEngine

/// The head of a response, and the framing of the body that follows.
package struct ResponseHead: Sendable {
    package var status: Int
    package var fields: HeaderFields
    /// The length of the body; `nil` if no `Content-Length` frames the body.
    package var contentBytes: Int?
    /// Whether a body follows.
    package var hasContent: Bool
    /// Whether both a length and a coding were given; the connection must not be used again.
    package var isFramedTwice = false
    /// The whole body, if it arrived with the head.
    package var content: ByteChunk?

    package init(
        status: Int,
        fields: HeaderFields,
        contentBytes: Int? = nil,
        hasContent: Bool,
        content: ByteChunk? = nil
    ) {
        self.status = status
        self.fields = fields
        self.contentBytes = contentBytes
        self.hasContent = hasContent
        self.content = content
    }
}
