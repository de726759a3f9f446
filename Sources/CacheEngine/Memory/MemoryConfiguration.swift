import Platform

/// The size and the rules of a memory.
package struct MemoryConfiguration: Hashable, Sendable {
    /// Bytes that may be in use, with all overhead.
    package var capacityBytes: Int
    package var policy: EvictionPolicy
    /// The size of the largest entry that is kept, as a share of the capacity.
    package var entrySizeShareMax: Double
    /// The share of the capacity beyond which pinned entries are evicted like others.
    package var pinnedShareMax: Double
    /// The number of shards, rounded up to a power of two; `nil` chooses it by the cores.
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

extension MemoryConfiguration {
    /// The number of shards: four to a core, fewer where each would be very small.
    var effectiveShardCount: Int {
        if let shardCount { return Self.powerOfTwo(atLeast: min(shardCount, 1024)) }
        let cores = Self.powerOfTwo(atLeast: Machine.processorCount)
        var count = max(16, cores * 4)
        while count > 1, capacityBytes / count < Self.shardSizeBytesMin { count /= 2 }
        return count
    }

    /// A smaller shard would hold too few entries to be worth its table.
    private static let shardSizeBytesMin = 1 << 20

    private static func powerOfTwo(atLeast count: Int) -> Int {
        var power = 1
        while power < count { power *= 2 }
        return power
    }
}
