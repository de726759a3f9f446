/// The limits of a message; a larger one is refused.
///
/// Bytes are counted before they are kept.
public struct WireLimits: Hashable, Sendable {
    /// Bytes of a request head, request line included.
    public var headBytesMax = 32 * 1024
    /// Bytes of one line of the head.
    public var lineBytesMax = 16 * 1024
    /// Bytes of a request target (RFC 9112 §3 asks for 8,000 at least).
    public var targetBytesMax = 8 * 1024
    /// Field lines of a head.
    public var fieldCountMax = 128
    /// Bytes of a method's name.
    public var methodBytesMax = 32
    /// Bytes of the line in front of a chunk, extensions included.
    public var chunkLineBytesMax = 256
    /// Bytes of a trailer section.
    public var trailerBytesMax = 8 * 1024
    /// The limit of a request's content in bytes.
    public var contentBytesMax = Int.max

    /// The default limits.
    public init() {}
}
