/// The tier behind the memory: nothing, a disk, or a custom store.
public struct BackingStore: Sendable {
    package enum Kind: Sendable {
        case none
        case directory(path: String, capacity: ByteCount)
        case custom(any CacheStore)
    }

    package let kind: Kind
    /// The limits on the calls of a custom store, and on the work that waits for it.
    ///
    /// A disk heeds `maximumOperationTime` alone. A cache whose store is no custom one does not open
    /// with other limits that it would not heed.
    public var storeLimits = StoreLimits()
    /// The moment from which written bytes survive a power cut.
    ///
    /// This setting and the next two are those of a disk: without one, a cache does not open with
    /// other values.
    public var durability = Durability.none
    /// The action on a directory that holds other files.
    public var foreignDirectory = ForeignDirectory.refuse
    /// The largest entry kept on disk, as a share of the capacity.
    public var maximumEntryShare = 0.05
    /// The file system; a test replaces it with one that fails.
    package var fileSystem = Volume.system
    /// The pool that works on the files; a simulation replaces it with one that it drives.
    package var pool: IOPool?
    /// The milliseconds after which queued bytes are written.
    package var flushMilliseconds = 50

    /// The moment from which written bytes survive a power cut.
    ///
    /// Written bytes survive the end of the process under every setting: an acknowledged removal
    /// survives `kill -9`.
    public enum Durability: Hashable, Sendable {
        /// The system decides.
        case none
        /// Bytes are synced when a segment is full, on `flush()` and on `shutDown()`.
        case onSegmentSeal
        /// The device has also confirmed a removal before `remove`, `purge`, `removeAll` and
        /// `markStale` return, and before the response to an unsafe method that removed an entry is
        /// returned.
        case onRemoval
    }

    /// The action on a directory that holds other files.
    public enum ForeignDirectory: Hashable, Sendable {
        /// Opening the cache fails.
        case refuse
        /// The directory is used; what a cache has left in it is deleted, and other files stay.
        case startEmpty
    }

    /// No tier behind the memory.
    public static let none = BackingStore(kind: .none)

    /// Returns a disk in a directory of this cache alone; `capacity` includes metadata.
    public static func disk(path: String, capacity: ByteCount) -> BackingStore {
        BackingStore(kind: .directory(path: path, capacity: capacity))
    }

    /// Returns a custom store, with the limits on its calls.
    public static func custom(
        _ store: any CacheStore,
        limits: StoreLimits = StoreLimits()
    ) -> BackingStore {
        var options = BackingStore(kind: .custom(store))
        options.storeLimits = limits
        return options
    }

    private init(kind: Kind) { self.kind = kind }
}
