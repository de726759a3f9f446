/// The limits of an origin's response; a larger one is refused.
struct ResponseLimits: Hashable, Sendable {
    /// Bytes of a head and of the 1xx before it, without the ends of their lines.
    var headBytesMax = 256 * 1024
    /// Field lines of one head.
    var fieldCountMax = 512
    /// Heads of 1xx before the response.
    var interimCountMax = 32
    /// Bytes of a trailer section.
    var trailerBytesMax = 256 * 1024
}
