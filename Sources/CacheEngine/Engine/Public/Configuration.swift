extension HTTPCache {
    /// The configuration of a cache.
    public struct Configuration: Sendable {
        /// The memory that the cache may use in total, or `.disabled`.
        public var memory: MemoryOptions
        /// The disk, or a custom store, behind the memory.
        public var backing: BackingStore
        /// Whether the cache is shared or private (RFC 9111 §1).
        public var mode: Mode
        /// The policy of requests that have none of their own.
        public var policy: CachePolicy
        /// The rules that decide which responses are stored, and for how long.
        public var caching: CachingRules
        /// The way in which concurrent misses of one key share a fetch.
        public var collapsing: CollapsingOptions
        /// The limits on an origin's response.
        public var originLimits: OriginLimits
        /// The application's own functions that the cache calls.
        public var hooks: CacheHooks
        /// The name of the cache in `Cache-Status` (RFC 9211).
        public var name: String
        /// Whether responses carry a `Cache-Status` field.
        public var cacheStatus: CacheStatusField
        /// The time that `shutDown()` waits for origin requests, and for calls of a custom store,
        /// that do not end when they are cancelled.
        public var maximumShutDownTime = Duration.seconds(10.0)
        /// The clock, which a test may replace.
        public var clock: any CacheClock
        /// The executor of the cache's own tasks; `nil` for the global one of the process.
        public var taskExecutor: (any TaskExecutor)?
        /// The limits on the bytes of arriving bodies; `nil` for those that follow from the memory.
        package var bodyLimits: BodyLimits?
        /// The seed of the keys' hashes, which a simulation must know.
        package var hasher: KeyHasher?

        /// The kind of a cache, by its users.
        public enum Mode: String, Hashable, Sendable {
            /// The cache serves many users: `private` responses are not stored, `s-maxage` is
            /// obeyed.
            case shared
            /// The cache serves one user.
            case `private`
        }

        /// Whether responses carry a `Cache-Status` field.
        public enum CacheStatusField: Hashable, Sendable {
            /// The field is added.
            case added
            /// The field is left out; `CacheInfo` holds the same facts.
            case omitted
        }

        /// Creates a configuration, by default with memory only.
        public init(
            memory: MemoryOptions = .megabytes(64),
            backing: BackingStore = .none,
            mode: Mode = .shared,
            policy: CachePolicy = .standard
        ) {
            self.memory = memory
            self.backing = backing
            self.mode = mode
            self.policy = policy
            caching = CachingRules()
            collapsing = CollapsingOptions()
            originLimits = OriginLimits()
            hooks = CacheHooks()
            name = "CacheEngine"
            cacheStatus = .added
            clock = SystemClock()
        }

        /// Returns the configuration of a private cache that writes no file, as for an ephemeral
        /// session.
        public static func ephemeral(_ memory: MemoryOptions = .megabytes(64))
            -> HTTPCache.Configuration
        {
            HTTPCache.Configuration(memory: memory, backing: .none, mode: .private)
        }
    }
}

/// The memory that a cache may use.
public struct MemoryOptions: Hashable, Sendable {
    /// The memory in total: bodies, fields, keys and the tables themselves.
    public var capacity: ByteCount
    /// The order in which entries are evicted.
    public var eviction: EvictionPolicy
    /// The largest entry kept in memory, as a share of the capacity.
    public var maximumEntryShare: Double
    /// The share of the memory that pinned entries may hold.
    public var maximumPinnedShare: Double

    /// Creates options for that much memory.
    public init(
        capacity: ByteCount,
        eviction: EvictionPolicy = .sizeAware(.balanced),
        maximumEntryShare: Double = 0.1,
        maximumPinnedShare: Double = 0.25
    ) {
        self.capacity = capacity
        self.eviction = eviction
        self.maximumEntryShare = maximumEntryShare
        self.maximumPinnedShare = maximumPinnedShare
    }

    /// Options that keep no entry in memory.
    public static let disabled = MemoryOptions(capacity: .zero)
    /// Returns options for that many units of 1,048,576 bytes.
    public static func megabytes(_ count: Int) -> Self { Self(capacity: .megabytes(count)) }
    /// Returns options for that many units of 1,073,741,824 bytes.
    public static func gigabytes(_ count: Int) -> Self { Self(capacity: .gigabytes(count)) }
    /// Returns options for that many bytes.
    public static func bytes(_ count: Int) -> Self { Self(capacity: .bytes(count)) }
}

/// The tier behind the memory: nothing, a disk, or a custom store.
public struct BackingStore: Sendable {
    package enum Kind: Sendable {
        case none
        case directory(path: String, capacity: ByteCount)
        case custom(any CacheStore)
    }

    package let kind: Kind
    /// The limits on the calls of a custom store, and on the work that waits for it.
    public var storeLimits = StoreLimits()
    /// The moment from which written bytes survive a power cut.
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
        /// The files in the directory are deleted.
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

/// The limits beyond which an origin's response is abandoned.
public struct OriginLimits: Hashable, Sendable {
    /// The longest time until the head of the response arrives.
    public var maximumHeadTime = Duration.seconds(60.0)
    /// The longest time between two pieces of a body that is being stored.
    ///
    /// If a body is not stored, a reader that takes nothing for this time no longer holds up the
    /// others. A body that its readers hold up for this time, because memory is short, is not stored.
    public var maximumIdleTime = Duration.seconds(60.0)
    /// The most field lines in a head.
    public var maximumFields = 1_000
    /// The largest head.
    public var maximumHeadSize = ByteCount.kilobytes(256)
    /// The part of a body kept in memory for its readers if the body is not stored; less if memory is
    /// short.
    public var windowSize = ByteCount.megabytes(4)

    /// Creates the usual limits.
    public init() {}
}
