package import CacheEngine

/// The head of a response, and the framing of the body that follows.
package struct ResponseHead: Sendable {
    package var fields: HeaderFields
    package var status: Int
    /// The length of the body; `nil` if no `Content-Length` frames the body.
    package var contentBytes: Int?
    /// Whether a body follows.
    package var hasContent: Bool
    /// Whether both a length and a coding were given; the connection must not be used again.
    package var isFramedTwice = false
    /// The whole body, if it arrived with the head.
    package var content: ByteChunk?
}

// In an extension, so that the memberwise initialiser remains, which takes the fields first: one that
// assigns the properties of so wide a value by itself copies the whole value.
extension ResponseHead {
    package init(
        status: Int,
        fields: HeaderFields,
        contentBytes: Int? = nil,
        hasContent: Bool,
        content: ByteChunk? = nil
    ) {
        self.init(
            fields: fields,
            status: status,
            contentBytes: contentBytes,
            hasContent: hasContent,
            content: content
        )
    }
}
