import Platform

/// The layout and behaviour of the disk tier.
package struct DiskConfiguration: Sendable {
    /// When written bytes are forced from the operating system to the device.
    package enum Durability: Hashable, Sendable {
        /// Never: a killed process loses the queued entries, and a power cut may lose more.
        case none
        /// When a segment is full, on `flush()` and on `close()`.
        case onSegmentSeal
        /// As `onSegmentSeal`, and also before a removal is acknowledged and before a segment is
        /// used again.
        case onRemoval
    }

    /// The treatment of a directory that holds files no cache wrote.
    package enum ForeignDirectory: Hashable, Sendable {
        case error
        case startEmpty
    }

    package var directory: String
    package var capacityBytes: Int
    package var durability = Durability.none
    package var foreignDirectory = ForeignDirectory.error
    /// The number of shards, a power of two; `nil` derives it from the processors and the capacity.
    package var shardCount: Int?
    /// The size of a segment, a power of two from 64 KiB to 256 MiB; `nil` derives it from the
    /// capacity.
    package var segmentBytes: Int?
    /// The maximum bytes of unwritten entries in one shard; a larger entry waits alone.
    package var queueBytesMax = 16 << 20
    /// The number of unwritten bytes at which a shard starts to write.
    package var batchBytes = 256 << 10
    /// The milliseconds after which a shard writes everything it has queued.
    package var flushMilliseconds = 50
    /// The largest entry, body included; `nil` means an eighth of a shard.
    package var entryBytesMax: Int?
    /// The largest entry as a share of the present capacity; goes before `entryBytesMax`.
    package var entryShareMax: Double?
    /// Bodies above this many bytes are stored in separate files.
    package var inlineBodyBytesMax = 1 << 20
    package var ioThreads: Int?
    /// How often the entry with that identity, at a placement of those, was requested of late, if the
    /// memory before the disk has it; else 0.
    package typealias RequestsInMemory =
        @Sendable (_ identity: UInt64, _ placements: ClosedRange<UInt64>) -> Int
    /// Asked at a reclaim: what the memory serves is never read here.
    package var requestsInMemory: RequestsInMemory?
    /// The files that the process may open; `DiskGeometry` says how many of them the log takes.
    package var openFilesMax = Machine.openFilesMax
    /// The identity of the time since the machine was started; `nil` if it is not known.
    package var bootID = Machine.bootID
    /// The pool of a simulation; `nil` for threads of the tier's own.
    package var pool: IOPool?
    /// The nanoseconds after which a device that has not answered hangs; `DiskWatch` keeps the limit.
    package var waitNanoseconds = UInt64.max
    /// The nanoseconds after which a request goes on without the device, if that is earlier.
    package var requestNanoseconds = UInt64.max
    /// Starts a task of `DiskWatch`.
    package typealias StartTask = @Sendable (_ body: @escaping @Sendable () async -> Void) -> Void
    /// Starts the task that watches the waits, and gives it an owner.
    package var startTask: StartTask = { body in Task { await body() } }
    /// Starts a task that waits for a lane; the end of the cache must not cancel it.
    package var startWork: StartTask = { body in Task { await body() } }

    package init(directory: String, capacityBytes: Int) {
        self.directory = directory
        self.capacityBytes = capacityBytes
    }

    /// The largest entry of a directory with that capacity and that many shards.
    func entryBytesMax(capacityBytes: Int, shardCount: Int) -> Int {
        let share = DiskGeometry.shareBytes(capacityBytes, shardCount: shardCount)
        let ofCapacity = entryShareMax.map { max(1, capacityBytes.scaled(by: $0)) }
        return min(
            ofCapacity ?? entryBytesMax ?? share / 8,
            DiskGeometry.bodyBytesMax(shareBytes: share)
        )
    }
}

/// The division of a directory of a given capacity into shards and segments.
///
/// The tier keeps the file of each segment open. A new directory is divided so that these are at most
/// a quarter of the files that the process may open, as far as eight segments, and the largest size
/// of one, allow that. A directory that exists keeps its division, and its log grows to at most half
/// of the files.
package struct DiskGeometry: Hashable {
    static let segmentsPerShardMin = 4
    private static let newLogDivisor = 4
    private static let logDivisor = 2
    /// The bytes reserved for the manifests, a replacement manifest and the directories themselves.
    static func reservedBytes(shardCount: Int) -> Int { (shardCount + 5) * pageBytes }
    /// The part of the capacity that each shard may use.
    static func shareBytes(_ capacityBytes: Int, shardCount: Int) -> Int {
        max(0, capacityBytes - reservedBytes(shardCount: shardCount)) / shardCount
    }

    /// The largest body for whose file a shard with this share makes room: half of it, without the
    /// file's header and table.
    static func bodyBytesMax(shareBytes: Int) -> Int {
        max(0, shareBytes / 2 - shareBytes / 64 - 2 * pageBytes)
    }

    /// The most segments of one shard, whatever its capacity is.
    static func segmentsPerShardMax(openFilesMax: Int, shardCount: Int) -> Int {
        let files = openFilesMax / logDivisor / shardCount
        return min(RecordPlace.segmentsMax, max(segmentsPerShardMin, files))
    }

    /// The largest number of segments in the directory with this capacity; 0 if it is too small.
    ///
    /// A directory that exists keeps the division that it was laid out with, although its capacity may
    /// have grown.
    package static func segmentsMax(
        directory: String,
        capacityBytes: Int,
        openFilesMax: Int,
        processors: Int
    ) -> Int {
        var configuration = DiskConfiguration(directory: directory, capacityBytes: capacityBytes)
        configuration.openFilesMax = openFilesMax
        guard let geometry = known(configuration) ?? Self(configuration, processors: processors)
        else { return 0 }
        let share = shareBytes(capacityBytes, shardCount: geometry.shardCount)
        let segments = min(
            share / geometry.segmentBytes,
            segmentsPerShardMax(openFilesMax: openFilesMax, shardCount: geometry.shardCount)
        )
        // An opening holds every file that is there, before it gives some up.
        return (0..<geometry.shardCount).reduce(0) { sum, number in
            let path = DiskDirectory.shardPath(directory, number)
            let names = (try? Volume.system.list(path)) ?? []
            return sum + max(segments, names.count { DiskShard.slot(named: $0) != nil })
        }
    }

    /// The division of the directory, if it has one that the capacity still fits.
    private static func known(_ configuration: DiskConfiguration) -> DiskGeometry? {
        let (path, volume) = (configuration.directory, Volume.system)
        guard let names = try? volume.list(path),
            let search = try? ManifestSearch(path, names, configuration, volume, mends: false)
        else { return nil }
        return search.manifest.map(Self.init)
    }

    let shardCount: Int
    let segmentBytes: Int

    private init(_ manifest: Manifest) {
        shardCount = manifest.shardCount
        segmentBytes = manifest.segmentBytes
    }

    /// Computes the division that `configuration` asks for; `nil` if the capacity is too small.
    init?(_ configuration: DiskConfiguration, processors: Int) {
        let capacity = configuration.capacityBytes
        var shards = configuration.shardCount ?? Self.powerOfTwo(atLeast: min(16, processors))
        let smallest = configuration.segmentBytes ?? (4 << 20)
        if configuration.shardCount == nil {
            while shards > 1, capacity / shards < smallest * 8 { shards /= 2 }
        }
        let filesMax = configuration.openFilesMax / Self.newLogDivisor
        var share = Self.shareBytes(capacity, shardCount: shards)
        var segment = Self.segmentBytes(shareBytes: share, segmentsMax: filesMax / shards)
        if configuration.shardCount == nil, configuration.segmentBytes == nil {
            // Larger shards have larger segments.
            while shards > 1, segment < Manifest.segmentBytesMax,
                share / segment * shards > filesMax
            {
                shards /= 2
                share = Self.shareBytes(capacity, shardCount: shards)
                segment = Self.segmentBytes(shareBytes: share, segmentsMax: filesMax / shards)
            }
        }
        segmentBytes = configuration.segmentBytes ?? segment
        shardCount = shards
        let sizes = Manifest.segmentBytesMin...Manifest.segmentBytesMax
        guard (1...Manifest.shardCountMax).contains(shards), shards.nonzeroBitCount == 1,
            sizes.contains(segmentBytes), segmentBytes.nonzeroBitCount == 1,
            share / segmentBytes >= Self.segmentsPerShardMin
        else { return nil }
    }

    private static func segmentBytes(shareBytes: Int, segmentsMax: Int) -> Int {
        let largest = Manifest.segmentBytesMax
        var bytes = min(largest, max(4 << 20, powerOfTwo(atLeast: shareBytes / 128)))
        while bytes < largest, shareBytes / bytes > segmentsMax { bytes *= 2 }
        // A small cache gets small segments: with only a few, reclaiming one would lose too many
        // entries.
        while bytes > Manifest.segmentBytesMin, shareBytes / bytes < 8 { bytes /= 2 }
        return bytes
    }

    private static func powerOfTwo(atLeast value: Int) -> Int {
        value <= 1 ? 1 : 1 << (Int.bitWidth - (value - 1).leadingZeroBitCount)
    }
}
