/// The identity of an entry: the bytes of its key.
///
/// The hash is valid only in this process, because every start draws a new seed. A store that
/// outlives the process finds its entries by the bytes alone.
public struct StoreKey: Sendable, Hashable {
    /// The bytes of the key.
    public let bytes: [UInt8]
    package let hash: KeyHash

    package init(bytes: [UInt8], hash: KeyHash) {
        self.bytes = bytes
        self.hash = hash
    }

    /// Whether two keys have the same bytes.
    public static func == (left: Self, right: Self) -> Bool { left.bytes == right.bytes }

    /// Feeds the bytes to the hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}
