/// A place for entries behind the engine's memory: the engine's own disk, or one of yours.
///
/// Six methods, all asynchronous. What they must hold is written as a test kit that any store can
/// run (`StoreConformance` in `CacheTestSupport`): a store may forget, but never invents, and never
/// brings back what was removed.
public protocol CacheStore: Sendable {
    /// The entry for `key`, or nil.
    func entry(for key: StoreKey) async throws -> StoredEntry?

    /// Keeps `entry`, replacing what was there; a refusal removes what was there too.
    func store(_ entry: StoredEntry) async throws -> StoreOutcome

    /// Removes the entry for `key`; true when there was one.
    func remove(_ key: StoreKey) async throws -> Bool

    /// Removes every entry in `scope`. Durable before it returns.
    func removeAll(in scope: RemovalScope) async throws -> RemovalCount

    /// How much is stored, in constant time.
    func usage() async -> StoreUsage

    /// Writes out everything accepted so far.
    func flush() async throws
}

/// The identity of an entry: the key's bytes.
///
/// The hash beside them is this process's own: it is drawn anew at every start, so a store that
/// outlives the process finds its entries by the bytes alone.
public struct StoreKey: Sendable, Hashable {
    /// The key itself.
    public let bytes: [UInt8]
    package let hash: KeyHash

    package init(bytes: [UInt8], hash: KeyHash) {
        self.bytes = bytes
        self.hash = hash
    }

    /// Whether two keys have the same bytes.
    public static func == (left: Self, right: Self) -> Bool { left.bytes == right.bytes }

    /// Feeds the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// What became of an entry given to a store.
public enum StoreOutcome: Hashable, Sendable {
    /// It is kept.
    case stored
    /// It is not kept, and neither is what was there before.
    case refused(Reason)

    /// Why a store did not keep an entry.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// Larger than the store's limit for one entry.
        case tooLarge = "too-large"
        /// The store's queue of unwritten entries is full.
        case queueFull = "queue-full"
        /// The device failed or is full.
        case deviceFailed = "device-failed"
        /// The store is being closed.
        case closed
        /// An admission rule turned it away.
        case notAdmitted = "not-admitted"
        /// A removal that came later covers it.
        case removedMeanwhile = "removed-meanwhile"
    }
}

/// Which entries a removal concerns.
public enum RemovalScope: Hashable, Sendable {
    /// Every entry.
    case everything
    /// The entries that carry the tag.
    case tag(String)
    /// The entries of one storage class.
    case storageClass(StorageClass)
    /// The entries stored at that second or later.
    case storedAfter(seconds: Int64)
    /// The entries stored before that second.
    case storedBefore(seconds: Int64)
}

/// How much a removal took away.
public struct RemovalCount: Hashable, Sendable {
    /// Entries removed.
    public var entries: Int
    /// Their bytes.
    public var bytes: Int

    /// A count of entries and bytes.
    public init(entries: Int = 0, bytes: Int = 0) {
        self.entries = entries
        self.bytes = bytes
    }

    /// The sum of two removals.
    public static func + (left: Self, right: Self) -> Self {
        Self(entries: left.entries + right.entries, bytes: left.bytes + right.bytes)
    }
}

/// How much a store holds.
public struct StoreUsage: Hashable, Sendable {
    /// Entries held.
    public var entries: Int
    /// Bytes in use, all overhead included.
    public var bytes: Int
    /// Bytes that may be in use.
    public var capacityBytes: Int

    /// A usage with the given numbers.
    public init(entries: Int = 0, bytes: Int = 0, capacityBytes: Int = 0) {
        self.entries = entries
        self.bytes = bytes
        self.capacityBytes = capacityBytes
    }
}
