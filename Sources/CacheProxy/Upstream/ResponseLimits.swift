/// The limits of an origin's response; a larger one is refused.
package struct ResponseLimits: Hashable, Sendable {
    /// Bytes of one head, without the ends of its lines.
    package var headBytesMax = 256 * 1024
    /// Field lines of one head.
    package var fieldCountMax = 512
    /// Heads of 1xx before the response.
    package var interimCountMax = 32
    /// Bytes of the line in front of a chunk, extensions included.
    package var chunkLineBytesMax = 4 * 1024
    /// Bytes of a trailer section.
    package var trailerBytesMax = 256 * 1024

    /// The default limits.
    package init() {}
}
