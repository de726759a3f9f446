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
        /// that do not end when they are cancelled, and for a disk that hangs.
        public var maximumShutDownTime = Duration.seconds(10.0)
        /// The clock, which a test may replace.
        public var clock: any CacheClock
        /// The executor of the cache's own tasks; `nil` for the global one of the process.
        public var taskExecutor: (any TaskExecutor)?
        /// The limits on the bytes of arriving bodies; `nil` for those that follow from the memory.
        package var bodyLimits: BodyLimits?
        /// The seed of the keys' hashes, which a simulation must know.
        package var hasher: KeyHasher?
        /// The URL that requests have for one that an origin names; `nil` if it is the same.
        package var requestURL: (@Sendable (String) -> String)?

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

        /// Returns the configuration of a private cache on disk, whose responses survive a restart.
        public static func persistent(
            path: String,
            capacity: ByteCount,
            memory: MemoryOptions = .megabytes(8),
            policy: CachePolicy = .standard
        ) -> HTTPCache.Configuration {
            HTTPCache.Configuration(
                memory: memory,
                backing: .disk(path: path, capacity: capacity),
                mode: .private,
                policy: policy
            )
        }
    }
}
