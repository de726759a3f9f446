/// The amount that a store holds.
public struct StoreUsage: Hashable, Sendable {
    /// The number of entries.
    public var entries: Int
    /// The bytes in use, including overhead.
    public var bytes: Int
    /// The maximum number of bytes in use.
    public var capacityBytes: Int

    /// A usage with the given numbers.
    public init(entries: Int = 0, bytes: Int = 0, capacityBytes: Int = 0) {
        self.entries = entries
        self.bytes = bytes
        self.capacityBytes = capacityBytes
    }
}
