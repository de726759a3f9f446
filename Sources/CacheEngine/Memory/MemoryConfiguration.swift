/// How large the memory is and how it behaves.
package struct MemoryConfiguration: Hashable, Sendable {
    /// Bytes that may be in use, all overhead counted.
    package var capacityBytes: Int
    package var policy: EvictionPolicy
    /// The largest entry kept, as a share of the capacity.
    package var entrySizeShareMax: Double
    /// How much of the capacity pinned entries may take before they are evicted like others.
    package var pinnedShareMax: Double
    /// A fixed number of shards (rounded up to a power of two); nil chooses one by the cores.
    package var shardCount: Int?

    package init(
        capacityBytes: Int,
        policy: EvictionPolicy = .sizeAware(.balanced),
        entrySizeShareMax: Double = 1,
        pinnedShareMax: Double = 0.5,
        shardCount: Int? = nil
    ) {
        self.capacityBytes = max(0, capacityBytes)
        self.policy = policy
        self.entrySizeShareMax = entrySizeShareMax
        self.pinnedShareMax = pinnedShareMax
        self.shardCount = shardCount
    }
}
