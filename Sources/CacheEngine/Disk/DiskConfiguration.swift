/// How the disk tier is laid out and how it behaves.
package struct DiskConfiguration: Sendable {
    /// When written bytes must be on the device and not only with the operating system.
    package enum Durability: Hashable, Sendable {
        /// Never: a process that is killed loses what is queued, a power cut may lose more.
        case none
        /// When a segment is full, on `flush()` and on `close()`.
        case onSeal
        /// Also before a removal is acknowledged and before a segment is used again.
        case synced
    }

    /// Which entries are written at all.
    package enum Admission: Hashable, Sendable {
        case always
        /// Entries whose key was offered before, not too long ago.
        case secondUse
        /// Entries as long as the bytes written in the last day stay under the limit.
        case bytesPerDay(ByteCount)
    }

    /// What to do with a directory of another version, or a damaged one.
    package enum ForeignDirectory: Hashable, Sendable {
        case error
        case startEmpty
    }

    package var directory: String
    package var capacityBytes: Int
    package var durability = Durability.none
    package var admission = Admission.always
    package var foreignDirectory = ForeignDirectory.error
    /// Number of shards, a power of two; nil: from the number of processors and the capacity.
    package var shardCount: Int?
    /// Size of a segment, a power of two from 64 KiB to 256 MiB; nil: from the capacity.
    package var segmentBytes: Int?
    /// The most bytes of unwritten entries in one shard.
    package var queueBytesMax = 16 << 20
    /// Unwritten bytes at which a shard starts to write.
    package var batchBytes = 256 << 10
    /// Milliseconds after which a shard writes what it has.
    package var flushMilliseconds = 50
    /// The largest entry, body included; nil: an eighth of a shard.
    package var entryBytesMax: Int?
    /// Bodies above this many bytes are kept in files of their own.
    package var inlineBodyBytesMax = 1 << 20
    package var ioThreads: Int?

    package init(directory: String, capacityBytes: Int) {
        self.directory = directory
        self.capacityBytes = capacityBytes
    }
}

/// How a directory of a given capacity is divided.
struct DiskGeometry: Hashable {
    static let segmentsPerShardMin = 4
    /// Bytes set aside for the manifest, its replacement and the directories themselves.
    static func reservedBytes(shardCount: Int) -> Int { (shardCount + 4) * pageBytes }

    let shardCount: Int
    let segmentBytes: Int

    /// The division that `configuration` asks for; nil when the capacity is too small for any.
    init?(_ configuration: DiskConfiguration, processors: Int) {
        let capacity = configuration.capacityBytes
        var shards = configuration.shardCount ?? Self.powerOfTwo(atLeast: min(16, processors))
        let smallest = configuration.segmentBytes ?? (4 << 20)
        if configuration.shardCount == nil {
            while shards > 1, capacity / shards < smallest * 8 { shards /= 2 }
        }
        let share = (capacity - Self.reservedBytes(shardCount: shards)) / shards
        segmentBytes = configuration.segmentBytes ?? Self.segmentBytes(shareBytes: share)
        shardCount = shards
        let sizes = Manifest.segmentBytesMin...Manifest.segmentBytesMax
        guard (1...Manifest.shardCountMax).contains(shards), shards.nonzeroBitCount == 1,
            sizes.contains(segmentBytes), segmentBytes.nonzeroBitCount == 1,
            share / segmentBytes >= Self.segmentsPerShardMin
        else { return nil }
    }

    private static func segmentBytes(shareBytes: Int) -> Int {
        let wanted = min(256 << 20, max(4 << 20, powerOfTwo(atLeast: shareBytes / 128)))
        // A small cache gets small segments: with few of them, reclaiming one loses too much.
        var bytes = wanted
        while bytes > Manifest.segmentBytesMin, shareBytes / bytes < 8 { bytes /= 2 }
        return bytes
    }

    private static func powerOfTwo(atLeast value: Int) -> Int {
        value <= 1 ? 1 : 1 << (Int.bitWidth - (value - 1).leadingZeroBitCount)
    }
}
