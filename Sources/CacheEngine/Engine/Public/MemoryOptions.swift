/// The memory that a cache may use.
public struct MemoryOptions: Hashable, Sendable {
    /// The memory in total: bodies, fields, keys and the tables themselves.
    public var capacity: ByteCount
    /// The order in which entries are evicted.
    public var eviction: EvictionPolicy
    /// The largest entry kept in memory, as a share of the capacity.
    public var maximumEntryShare: Double
    /// The share of the memory that pinned entries may hold.
    public var maximumPinnedShare: Double

    /// Creates options for that much memory.
    public init(
        capacity: ByteCount,
        eviction: EvictionPolicy = .sizeAware(.balanced),
        maximumEntryShare: Double = 0.1,
        maximumPinnedShare: Double = 0.25
    ) {
        self.capacity = capacity
        self.eviction = eviction
        self.maximumEntryShare = maximumEntryShare
        self.maximumPinnedShare = maximumPinnedShare
    }

    /// Options that keep no entry in memory.
    public static let disabled = MemoryOptions(capacity: .zero)
    /// Returns options for that many units of 1,048,576 bytes.
    public static func megabytes(_ count: Int) -> Self { Self(capacity: .megabytes(count)) }
    /// Returns options for that many units of 1,073,741,824 bytes.
    public static func gigabytes(_ count: Int) -> Self { Self(capacity: .gigabytes(count)) }
    /// Returns options for that many bytes.
    public static func bytes(_ count: Int) -> Self { Self(capacity: .bytes(count)) }
}
