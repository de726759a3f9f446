/// The limits of a message; a larger one is refused.
///
/// Bytes are counted before they are kept.
struct WireLimits: Hashable, Sendable {
    /// Bytes of a request head, request line included.
    var headBytesMax = 32 * 1024
    /// Bytes of one line of the head.
    var lineBytesMax = 16 * 1024
    /// Field lines of a head, and names in its Connection fields.
    var fieldCountMax = 128
    /// The limit of a request's content in bytes.
    var contentBytesMax = Int.max
}
