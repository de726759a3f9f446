extension HTTPCache {
    /// The counts of a cache since it was created, and its contents.
    public struct Statistics: Sendable {
        /// The responses returned to callers, by source.
        public var answers: [CacheInfo.Source: Int] = [:]
        /// The requests sent to the origin.
        public var originRequests = 0
        /// The requests to the origin that failed.
        public var originFailures = 0
        /// The body bytes received from the origin.
        public var originBytes = 0
        /// The responses that were stored.
        public var stored = 0
        /// The responses that were not stored, by reason.
        public var refusals: [StoreRefusalReason: Int] = [:]
        /// The calls of the `willStore` hook that threw or took too long.
        public var hookFailures = 0
        /// The store operations that failed; each read and write of the disk is one operation.
        public var storageErrors = 0
        /// The fetches that other requests could join.
        public var flights = 0
        /// The requests that waited for the fetch of another request.
        public var waiters = 0
        /// The waiters that took over a fetch from a leader that failed.
        public var reElections = 0
        /// The requests that were sent to the origin alone, by reason; the article Collapse lists the
        /// reasons.
        public var escapes: [String: Int] = [:]
        /// The keys marked because their response could not be shared.
        public var hitForMissMarks = 0
        /// The shared fetches of which every attempt failed.
        public var sharedErrors = 0
        /// The fetches that were abandoned because the origin sent nothing for too long.
        public var timeouts = 0
        /// The background refreshes that succeeded.
        public var refreshes = 0
        /// The background refreshes that failed, or whose responses were not for all clients.
        public var refreshFailures = 0
        /// The entries found on disk, indexes of variants included.
        public var diskHits = 0
        /// The reads of the disk that were refused because too many waited; each was a miss.
        public var diskReadsRefused = 0
        /// The records on disk that failed a check; each was a miss.
        public var diskRecordsDamaged = 0
        /// The segments of the disk whose entries were dropped to make room.
        public var diskSegmentsReclaimed = 0
        /// The shards of the disk that store nothing now, because the device fails.
        public var diskShardsFailed = 0
        /// The removals by request, and the entries removed by scope or tag.
        public var removals = 0
        /// The entries removed from memory or disk because an unsafe method succeeded; one that only
        /// a custom store holds is removed too, and not counted.
        public var invalidations = 0
        /// The entries evicted from memory to make room.
        public var evictions = 0
        /// The removals that a custom store failed to carry out, and that will be tried again.
        public var owedRemovals = 0
        /// The number of waits, by the upper bound of their duration in milliseconds.
        public var waitMilliseconds: [(upperBound: Double, count: Int)] = []
        /// The duration of all these waits together.
        public var totalWait = Duration.zero
        /// The contents of the memory.
        public var memory = StoreUsage()
        /// The contents of the disk, or of the custom store in its place.
        public var disk = StoreUsage()

        /// The counts of the fleet; `nil` if the cache belongs to no fleet.
        public var fleet: FleetStatistics?

        /// The share of responses served without the origin.
        public var hitRatio: Double {
            let hits = (answers[.fresh] ?? 0) + (answers[.stale] ?? 0)
            let all = answers.values.reduce(0, +)
            return all == 0 ? 0 : Double(hits) / Double(all)
        }
    }
}

/// The work that a cache does now; every count is 0 if the cache is idle.
public struct WorkUnderWay: Hashable, Sendable {
    /// The keys with a flight under way.
    public var flights = 0
    /// The cache's own tasks.
    public var tasks = 0
    /// The keys with requests at the origin, if such requests are limited.
    public var limitedKeys = 0

    /// Creates a value without work.
    public init() {}
}
