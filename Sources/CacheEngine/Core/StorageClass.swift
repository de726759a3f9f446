/// How long an entry may live, apart from the rules of HTTP.
public enum StorageClass: UInt8, Hashable, Sendable, CaseIterable {
    /// Survives restarts; evicted when space is needed.
    case permanent = 0
    /// Ends with the session: removed at the next open and by `endSession()`.
    case session = 1
    /// Survives restarts; not evicted while pinned entries stay within their share.
    ///
    /// The share of the memory is `MemoryOptions.maximumPinnedShare`; beyond it, those that were not
    /// used for longest are evicted like others. The share of the disk is half: of the capacity for
    /// bodies over 1 MiB, and of each segment of the log for smaller entries. Of smaller entries that
    /// are pinned one after the other, half may be evicted, and more while large bodies take the room
    /// of many segments at once.
    case pinned = 2
}

/// Where an entry may be kept.
public enum StoragePlace: UInt8, Hashable, Sendable {
    /// In memory and on disk.
    case everywhere = 0
    /// In memory only: no byte of the entry reaches a file.
    case memoryOnly = 1
}
