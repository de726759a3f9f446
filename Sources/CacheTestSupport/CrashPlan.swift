package import CacheEngine

/// What the crash test's two processes agree on.
package enum CrashPlan {
    package static let keys = 64
    package static let tags = ["red", "green", "blue"]
    package static let sizes = [10, 500, 500, 4_000, 4_000, 20_000, 90_000]
    /// Bytes a shard may hold unwritten, and so lose.
    package static let queueBytesMax = 1 << 20
    package static let shardCount = 2

    package static func configuration(directory: String, capacityBytes: Int) -> DiskConfiguration {
        var configuration = DiskConfiguration(
            directory: directory,
            capacityBytes: capacityBytes
        )
        configuration.segmentBytes = 128 << 10
        configuration.shardCount = shardCount
        configuration.queueBytesMax = queueBytesMax
        configuration.entryBytesMax = 200_000
        configuration.ioThreads = 2
        return configuration
    }
}
