extension Target {
    /// The targets of the engine.
    package static let all: [Target] = memory + disk + hitRatio + fleet

    private static let memory: [Target] = [
        Target(
            "memory",
            "a memory hit takes no longer than Caffeine's",
            "memory-hit",
            "time_per_hit",
            .ratio(to: "caffeine"),
            .atMost(1)
        ),
        Target(
            "memory",
            "for comparison: ConcurrentHashMap, without eviction",
            "memory-hit",
            "time_per_hit",
            .ratio(to: "concurrenthashmap"),
            .atMost(1)
        ),
        Target(
            "memory",
            "a memory hit allocates nothing",
            "memory-hit",
            "allocations",
            .value,
            .atMost(0)
        ),
        Target(
            "memory",
            "a fresh HTTP hit beside URLCache",
            "http-hit",
            "time_per_hit",
            .ratio(to: "urlcache"),
            .atMost(0.1)
        ),
        Target(
            "memory",
            "the engine behind URLCache's interface, a memory hit",
            "drop-in",
            "time_per_hit",
            .ratio(to: "urlcache"),
            .atMost(1)
        ),
        Target(
            "memory",
            "the p99 of a hit while its shard is written",
            "memory-hit-under-writes",
            "time_per_hit",
            .p99,
            .atMost(1_000)
        ),
        Target(
            "memory",
            "one origin request in a stampede",
            "stampede",
            "origin_requests",
            .value,
            .atMost(1)
        ),
        Target(
            "memory",
            "added wait of the last of 10,000 callers",
            "stampede",
            "last_added_wait",
            .value,
            .atMost(60_000_000)
        ),
        Target(
            "memory",
            "overhead of an entry in memory",
            "footprint",
            "memory_overhead_per_entry",
            .value,
            .atMost(64)
        ),
        Target(
            "memory",
            "resident memory over the capacity",
            "footprint",
            "resident_over_accounted",
            .value,
            .atMost(1.2)
        ),
    ]

    private static let hitRatio: [Target] = [
        Target(
            "hit-ratio",
            "points behind the best practical policy, on the mean",
            "hit-ratio",
            "mean_points_behind_best",
            .value,
            .atMost(-0.5)
        ),
        Target(
            "hit-ratio",
            "points behind it in the worst cell of 1 % and more",
            "hit-ratio",
            "worst_points_behind_best",
            .value,
            .atMost(1)
        ),
        Target(
            "hit-ratio",
            "points of bytes above LRU, on the mean",
            "hit-ratio",
            "mean_byte_points_over_lru",
            .value,
            .atLeast(0)
        ),
    ]

    private static let disk: [Target] = [
        Target(
            "disk",
            "a page-cached disk hit over raw pread and LZ4",
            "disk-hit-warm",
            "time_per_hit",
            .ratio(to: "floor"),
            .atMost(1.5)
        ) { $0.isUpTo64KiB },
        Target(
            "disk",
            "ahead of RocksDB",
            "disk-hit-warm",
            "time_per_hit",
            .ratio(to: "rocksdb"),
            .atMost(1)
        ) { $0.isUpTo64KiB },
        Target(
            "disk",
            "near LMDB (mapped, no checksum)",
            "disk-hit-warm",
            "time_per_hit",
            .ratio(to: "lmdb"),
            .atMost(1.5)
        ) { $0.isUpTo64KiB },
        Target(
            "disk",
            "ahead of URLCache",
            "disk-hit-warm",
            "time_per_hit",
            .ratio(to: "urlcache"),
            .atMost(1)
        ),
        Target(
            "disk",
            "the engine behind URLCache's interface, a disk hit",
            "drop-in",
            "time_per_hit",
            .ratio(to: "urlcache"),
            .atMost(1)
        ),
        Target(
            "disk",
            "the engine behind URLCache's interface, a store",
            "drop-in",
            "time_per_store",
            .ratio(to: "urlcache"),
            .atMost(1)
        ),
        Target(
            "disk",
            "a cold disk hit above the device's own time",
            "disk-hit-cold",
            "time_above_device",
            .value,
            .atMost(15_000)
        ),
        Target(
            "disk",
            "storing, over the slower of raw pwrite and LZ4",
            "disk-store",
            "throughput",
            .ratio(to: "floor"),
            .atLeast(0.7)
        ),
        Target(
            "disk",
            "storing, ahead of RocksDB",
            "disk-store",
            "throughput",
            .ratio(to: "rocksdb"),
            .atLeast(1)
        ),
        Target(
            "disk",
            "restart with a million entries",
            "restart",
            "time_to_open",
            .value,
            .atMost(500_000_000)
        ),
        Target(
            "disk",
            "entries recovered a second and core",
            "restart",
            "entries_per_core_second",
            .value,
            .atLeast(5_000_000)
        ),
        Target(
            "disk",
            "index memory of an entry on disk",
            "footprint",
            "disk_index_per_entry",
            .value,
            .atMost(21.4)
        ),
        Target(
            "disk",
            "bytes written over bytes stored",
            "write-amplification",
            "write_amplification",
            .value,
            .atMost(1.35)
        ),
    ]
}

extension Measurement {
    /// Whether the bodies have a size that is common in a web cache.
    fileprivate var isUpTo64KiB: Bool {
        ["1 KiB", "4 KiB", "16 KiB", "64 KiB"].contains(parameter("size") ?? "")
    }
}
