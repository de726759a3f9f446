/// The counters of the disk tier since it was opened, and its current state.
package struct DiskStatistics: Hashable, Sendable {
    /// Reads answered from the queue of unwritten entries.
    package var hitsQueued = 0
    /// Reads answered from the page cache, without waiting.
    package var hitsCached = 0
    /// Reads that waited for the device.
    package var hitsWaited = 0
    /// Reads that found no entry, or none that may be used.
    package var misses = 0
    /// Reads that joined a running read of the same key.
    package var readsJoined = 0
    /// Reads refused because too many were waiting for the device.
    package var readsRefused = 0
    /// Bytes of accepted entries as records, before padding and repeated writing.
    package var bytesAccepted = 0
    /// Bytes written to files, including all overhead.
    package var bytesWritten = 0
    /// Segments whose entries were dropped to make room.
    package var segmentsReclaimed = 0
    /// Entries written again because they were in use when their segment was reclaimed.
    package var reinsertions = 0
    /// Large bodies dropped to make room.
    package var bodiesReclaimed = 0
    /// Entries refused because the queue was full.
    package var queueOverflows = 0
    /// Entries refused for any other reason.
    package var refusals = 0
    /// Records with a failed check.
    package var recordsDamaged = 0
    /// Reads that failed.
    package var readErrors = 0
    /// Writes that failed.
    package var writeErrors = 0
    /// Shards that store nothing because their device failed, or because their directory is gone.
    package var shardsFailed = 0
    /// Bytes of memory used by the index.
    package var indexBytes = 0
    /// Entries in the index.
    package var indexEntries = 0
    /// Bytes that are queued for writing.
    package var queuedBytes = 0
    /// Bytes used by the files.
    package var fileBytes = 0

    /// Creates statistics in which every counter is zero.
    package init() {}

    /// Bytes written for each byte accepted.
    package var writeAmplification: Double {
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

/// The result of opening the directory.
package struct RecoveryReport: Hashable, Sendable {
    /// Entries that can be read.
    package var entries = 0
    /// Segments that were not sealed when the last process ended.
    package var torn = 0
    /// Files and records that were damaged or foreign, and are not used.
    package var damaged = 0
    /// Shards that start empty because their device could not be read.
    package var readErrors = 0
    /// Messages for the operator about the directory, one sentence each.
    package var notes: [String] = []
    /// Whether the directory was laid out anew and its old contents are lost.
    package var isFresh = false

    /// Creates the report of an empty directory.
    package init() {}

    mutating func add(_ other: Self) {
        entries += other.entries
        torn += other.torn
        damaged += other.damaged
        readErrors += other.readErrors
        notes += other.notes
    }
}
