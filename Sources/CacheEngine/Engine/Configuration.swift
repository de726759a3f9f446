/// How a cache is set up.
public struct Configuration: Sendable {
    /// The memory to use, everything counted, or `.disabled`.
    public var memory: MemoryOptions
    /// The disk to use, or a store of your own behind the memory.
    public var disk: DiskOptions
    /// Whose cache this is (RFC 9111 §1).
    public var mode: Mode
    /// The policy of requests that bring none.
    public var policy: CachePolicy
    /// How answers are judged and how long they last.
    public var storing: StoringOptions
    /// How misses of one key are collapsed.
    public var flights: FlightLimits
    /// What an origin may do to this process.
    public var originLimits: OriginLimits
    /// Code of yours that is asked on the way.
    public var hooks: CacheHooks
    /// The name in `Cache-Status` (RFC 9211).
    public var name: String
    /// Whether answers carry a `Cache-Status` field.
    public var cacheStatus: CacheStatusField
    /// The clock; a test brings its own.
    public var clock: any CacheClock
    /// The executor of the cache's own tasks; nil for the process's global one.
    public var taskExecutor: (any TaskExecutor)?
    /// The seed of the keys' hashes; a simulation needs to know it.
    package var hasher: KeyHasher?

    /// Whose cache it is.
    public enum Mode: String, Hashable, Sendable {
        /// Many users': `private` answers stay out, `s-maxage` counts.
        case shared
        /// One user's.
        case `private`
    }

    /// Whether answers say what the cache did.
    public enum CacheStatusField: Hashable, Sendable {
        /// They do.
        case added
        /// They do not; `CacheInfo` still does.
        case omitted
    }

    /// A configuration; only the memory is on unless a disk is given.
    public init(
        memory: MemoryOptions = .megabytes(64),
        disk: DiskOptions = .disabled,
        mode: Mode = .shared,
        policy: CachePolicy = .useProtocolCachePolicy
    ) {
        self.memory = memory
        self.disk = disk
        self.mode = mode
        self.policy = policy
        storing = StoringOptions()
        flights = FlightLimits()
        originLimits = OriginLimits()
        hooks = CacheHooks()
        name = "CacheEngine"
        cacheStatus = .added
        clock = SystemClock()
    }

    /// A cache that writes no file: the counterpart of an ephemeral session.
    public static func ephemeral(_ memory: MemoryOptions = .megabytes(64)) -> Configuration {
        Configuration(memory: memory, disk: .disabled, mode: .private)
    }
}

/// The memory a cache may use.
public struct MemoryOptions: Hashable, Sendable {
    /// Bytes in all: bodies, fields, keys and the tables themselves.
    public var capacity: ByteCount
    /// What is given up first when room is needed.
    public var eviction: EvictionPolicy
    /// The largest entry kept in memory, as a share of the capacity.
    public var entryShareMax: Double
    /// The share of the memory that pinned entries may hold.
    public var pinnedShareMax: Double

    /// Options for that much memory.
    public init(
        capacity: ByteCount,
        eviction: EvictionPolicy = .sizeAware(.balanced),
        entryShareMax: Double = 0.1,
        pinnedShareMax: Double = 0.25
    ) {
        self.capacity = capacity
        self.eviction = eviction
        self.entryShareMax = entryShareMax
        self.pinnedShareMax = pinnedShareMax
    }

    /// No entry is kept in memory.
    public static let disabled = MemoryOptions(capacity: .zero)
    /// That many units of 1,048,576 bytes.
    public static func megabytes(_ count: Int) -> Self { Self(capacity: .megabytes(count)) }
    /// That many units of 1,073,741,824 bytes.
    public static func gigabytes(_ count: Int) -> Self { Self(capacity: .gigabytes(count)) }
    /// That many bytes.
    public static func bytes(_ count: Int) -> Self { Self(capacity: .bytes(count)) }
}

/// What stands behind the memory.
public struct DiskOptions: Sendable {
    package enum Kind: Sendable {
        case disabled
        case directory(path: String, capacity: ByteCount)
        case custom(any CacheStore)
    }

    package let kind: Kind
    /// When bytes are safe from a power cut, and not only from the end of the process.
    public var durability = Durability.none
    /// What to do with a directory that holds something else, or damaged files.
    public var foreignDirectory = ForeignDirectory.refuse
    /// The largest entry kept on disk, as a share of the capacity.
    public var entryShareMax = 0.05

    /// When bytes are safe from a power cut.
    public enum Durability: Hashable, Sendable {
        /// When the system sees fit; after `kill -9` all but the last moments is there.
        case none
        /// When a segment is full, and on `flush()`.
        case synced
    }

    /// What to do with a directory that holds something else.
    public enum ForeignDirectory: Hashable, Sendable {
        /// Fail to open.
        case refuse
        /// Throw away what is there.
        case startEmpty
    }

    /// No disk.
    public static let disabled = DiskOptions(kind: .disabled)

    /// A directory for this cache alone, and how much it may hold, metadata included.
    public static func directory(_ path: String, _ capacity: ByteCount) -> DiskOptions {
        DiskOptions(kind: .directory(path: path, capacity: capacity))
    }

    /// A store of your own.
    public static func store(_ store: any CacheStore) -> DiskOptions {
        DiskOptions(kind: .custom(store))
    }

    private init(kind: Kind) { self.kind = kind }
}

/// What an origin may do before its answer is given up.
public struct OriginLimits: Hashable, Sendable {
    /// Seconds until the head of the answer must be there.
    public var headSecondsMax = 60.0
    /// Seconds that may pass between two pieces of a body that is being stored.
    public var idleSecondsMax = 60.0
    /// Lines in a head.
    public var fieldsMax = 1_000
    /// Bytes of a head.
    public var headBytesMax = 256 * 1_024
    /// Bytes of a body kept in memory for readers when it is stored nowhere.
    public var windowBytes = 4 * 1_024 * 1_024

    /// The usual limits.
    public init() {}
}
