/// What the disk tier has done since it was opened, and how it stands.
public struct DiskStatistics: Hashable, Sendable {
    /// Reads answered from the queue of unwritten entries.
    public var hitsQueued = 0
    /// Reads answered from the page cache, without waiting.
    public var hitsCached = 0
    /// Reads that waited for the device.
    public var hitsWaited = 0
    /// Reads that found nothing, or nothing that may be used.
    public var misses = 0
    /// Reads that joined another reader of the same key.
    public var readsJoined = 0
    /// Reads turned away because too many waited for the device.
    public var readsRefused = 0
    /// Bytes read from files.
    public var bytesRead = 0
    /// Entries accepted.
    public var stores = 0
    /// Bytes of accepted entries as records, before padding and repetition.
    public var bytesAccepted = 0
    /// Bytes written to files, all overhead included.
    public var bytesWritten = 0
    /// Segments whose entries were dropped to make room.
    public var segmentsReclaimed = 0
    /// Entries written again because they were in use when their segment was reclaimed.
    public var reinsertions = 0
    /// Large bodies dropped to make room.
    public var bodiesReclaimed = 0
    /// Entries refused because the queue was full.
    public var queueOverflows = 0
    /// Entries refused for any other reason.
    public var refusals = 0
    /// Records that did not hold what they should.
    public var recordsDamaged = 0
    /// Reads that failed.
    public var readErrors = 0
    /// Writes that failed.
    public var writeErrors = 0
    /// Shards that keep nothing because their device failed.
    public var shardsFailed = 0
    /// Bytes of memory that the index takes.
    public var indexBytes = 0
    /// Entries in the index.
    public var indexEntries = 0
    /// Bytes that wait to be written.
    public var queuedBytes = 0
    /// Bytes that the files take.
    public var fileBytes = 0

    /// Statistics without any event.
    public init() {}

    /// Bytes written for each byte accepted.
    public var writeAmplification: Double {
        bytesAccepted == 0 ? 1 : Double(bytesWritten) / Double(bytesAccepted)
    }
}

extension DiskStatistics {
    static func += (left: inout Self, right: Self) {
        left.hitsQueued += right.hitsQueued
        left.hitsCached += right.hitsCached
        left.hitsWaited += right.hitsWaited
        left.misses += right.misses
        left.readsJoined += right.readsJoined
        left.readsRefused += right.readsRefused
        left.bytesRead += right.bytesRead
        left.stores += right.stores
        left.bytesAccepted += right.bytesAccepted
        left.bytesWritten += right.bytesWritten
        left.segmentsReclaimed += right.segmentsReclaimed
        left.reinsertions += right.reinsertions
        left.bodiesReclaimed += right.bodiesReclaimed
        left.queueOverflows += right.queueOverflows
        left.refusals += right.refusals
        left.recordsDamaged += right.recordsDamaged
        left.readErrors += right.readErrors
        left.writeErrors += right.writeErrors
        left.shardsFailed += right.shardsFailed
        left.indexBytes += right.indexBytes
        left.indexEntries += right.indexEntries
        left.queuedBytes += right.queuedBytes
        left.fileBytes += right.fileBytes
    }
}

/// What opening the directory found.
public struct RecoveryReport: Hashable, Sendable {
    /// Segments with records.
    public var segments = 0
    /// Entries that can be read.
    public var entries = 0
    /// Bytes of records and large bodies.
    public var bytes = 0
    /// Segments that were not sealed when the last process ended.
    public var torn = 0
    /// Entries found past their expiry; they stay until room is needed, and are never served.
    public var expired = 0
    /// Files that were not what they should be, and were put aside.
    public var damaged = 0
    /// Whether the directory was laid out anew and what it held is gone.
    public var isFresh = false
    /// How long opening took.
    public var milliseconds = 0

    /// A report of an empty directory.
    public init() {}

    mutating func add(_ other: Self) {
        segments += other.segments
        entries += other.entries
        bytes += other.bytes
        torn += other.torn
        expired += other.expired
        damaged += other.damaged
    }
}
