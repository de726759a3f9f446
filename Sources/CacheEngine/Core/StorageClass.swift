/// How long an entry may live, apart from HTTP's own rules.
public enum StorageClass: UInt8, Hashable, Sendable, CaseIterable {
    /// Survives restarts, and is evicted when room is needed.
    case permanent = 0
    /// Ends with the session: gone at the next open and on `endSession()`.
    case session = 1
    /// Survives restarts, and is not evicted while pinned entries stay under their share: of the
    /// memory `MemoryOptions.pinnedShareMax`, of the disk half.
    case pinned = 2
}

/// Where an entry may be kept.
public enum StoragePlace: UInt8, Hashable, Sendable {
    /// In memory and on disk.
    case everywhere = 0
    /// In memory only: none of its bytes ever reach a file.
    case memoryOnly = 1
}
