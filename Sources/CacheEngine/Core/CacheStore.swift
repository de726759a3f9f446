/// A place for entries behind the engine's memory: the engine's disk, or an application's store.
///
/// The protocol has six asynchronous methods. A test kit checks their contract for any store
/// (`StoreConformance` in `CacheTestSupport`). A store may lose entries, but it must not invent one
/// or return a removed one.
public protocol CacheStore: Sendable {
    /// Returns the entry for `key`, or `nil` if there is none.
    func entry(for key: StoreKey) async throws -> StoredEntry?

    /// Stores `entry` in place of the previous one; a refusal also removes the previous one.
    func store(_ entry: StoredEntry) async throws -> StoreOutcome

    /// Removes the entry for `key`; returns `true` if there was one.
    func remove(_ key: StoreKey) async throws -> Bool

    /// Removes every entry in `scope`; the removal is durable when the method returns.
    ///
    /// An entry of the session class names its session. Entries of other sessions may remain,
    /// because they are not read again.
    func removeAll(in scope: RemovalScope) async throws -> RemovalCount

    /// Returns how much is stored, in O(1).
    func usage() async -> StoreUsage

    /// Writes everything accepted so far.
    func flush() async throws
}

/// The identity of an entry: the bytes of its key.
///
/// The hash is valid only in this process, because every start draws a new seed. A store that
/// outlives the process finds its entries by the bytes alone.
public struct StoreKey: Sendable, Hashable {
    /// The bytes of the key.
    public let bytes: [UInt8]
    package let hash: KeyHash

    package init(bytes: [UInt8], hash: KeyHash) {
        self.bytes = bytes
        self.hash = hash
    }

    /// Whether two keys have the same bytes.
    public static func == (left: Self, right: Self) -> Bool { left.bytes == right.bytes }

    /// Feeds the bytes to the hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// The result of storing an entry.
public enum StoreOutcome: Hashable, Sendable {
    /// The entry was stored.
    case stored
    /// The entry was not stored, and the previous one was removed.
    case refused(Reason)

    /// The reason why a store refused an entry.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The entry exceeds the store's limit for one entry.
        case tooLarge = "too-large"
        /// The store's queue of unwritten entries is full.
        case queueFull = "queue-full"
        /// The device failed or is full.
        case deviceFailed = "device-failed"
        /// The store is being closed.
        case closed
        /// An admission rule refused the entry.
        case notAdmitted = "not-admitted"
        /// A part (206) whose `Content-Range` is missing, has no size, or contradicts its body.
        case invalidPart = "invalid-part"
        /// A later removal covers the entry, or a newer response has come before its end.
        case removedMeanwhile = "removed-meanwhile"
    }
}

/// The entries that a removal concerns.
public enum RemovalScope: Hashable, Sendable {
    /// Every entry.
    case everything
    /// The entries that carry the tag.
    case tag(String)
    /// The entries of one storage class.
    case storageClass(StorageClass)
    /// The entries stored in that second or later.
    case storedAfter(seconds: Int64)
    /// The entries stored before that second.
    case storedBefore(seconds: Int64)
}

/// The number of entries that a removal removed, as far as it is known without reading a disk.
///
/// A removal by tag or time does not count entries that are only on disk, and one of a storage class
/// not those on disk in a segment that is written to meanwhile.
public struct RemovalCount: Hashable, Sendable {
    /// The number of entries removed.
    public var entries: Int
    /// The number of bytes of those entries.
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

/// The amount that a store holds.
public struct StoreUsage: Hashable, Sendable {
    /// The number of entries.
    public var entries: Int
    /// The bytes in use, including overhead.
    public var bytes: Int
    /// The maximum number of bytes in use.
    public var capacityBytes: Int

    /// A usage with the given numbers.
    public init(entries: Int = 0, bytes: Int = 0, capacityBytes: Int = 0) {
        self.entries = entries
        self.bytes = bytes
        self.capacityBytes = capacityBytes
    }
}
