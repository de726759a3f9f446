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
        /// The requests that were sent to the origin alone, by reason.
        public var escapes: [String: Int] = [:]
        /// The keys marked because their response could not be shared.
        public var hitForMissMarks = 0
        /// The shared fetches of which every attempt failed.
        public var sharedErrors = 0
        /// The fetches that were abandoned because the origin sent nothing for too long.
        public var timeouts = 0
        /// The background refreshes that succeeded.
        public var refreshes = 0
        /// The background refreshes that failed.
        public var refreshFailures = 0
        /// The entries found on disk, indexes of variants included.
        public var diskHits = 0
        /// The removals by request, and the entries removed by scope or tag.
        public var removals = 0
        /// The entries removed because an unsafe method succeeded.
        public var invalidations = 0
        /// The entries evicted from memory to make room.
        public var evictions = 0
        /// The removals that a custom store failed to carry out, and that will be tried again.
        public var owedRemovals = 0
        /// The number of waits, by the upper bound of their duration in milliseconds.
        public var waitMilliseconds: [(upperBound: Double, count: Int)] = []
        /// The contents of the memory.
        public var memory = StoreUsage()
        /// The contents of the disk.
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

extension HTTPCache.Statistics {
    /// Returns the counters in the Prometheus text format, each name preceded by `prefix`.
    public func prometheusText(prefix: String = "cache") -> String {
        var metrics = PrometheusText(prefix: prefix)
        func counter(_ name: String, _ value: Int) {
            metrics.add(name, .counter, MetricHelp.text(name), value)
        }
        func counter(_ name: String, by label: String, _ values: [(String, Int)]) {
            let rows = values.map { (PrometheusText.label(label, $0), Double($1)) }
            metrics.add(name, .counter, MetricHelp.text(name), rows)
        }
        let sources = CacheInfo.Source.allCases
        counter("answers_total", by: "source", sources.map { ($0.rawValue, answers[$0] ?? 0) })
        counter("origin_requests_total", originRequests)
        counter("origin_failures_total", originFailures)
        counter("origin_bytes_total", originBytes)
        counter("stored_total", stored)
        let reasons = refusals.map { ($0.key.description, $0.value) }
        counter("refused_total", by: "reason", reasons.sorted { $0.0 < $1.0 })
        counter("hook_failures_total", hookFailures)
        counter("storage_errors_total", storageErrors)
        counter("flights_total", flights)
        counter("waiters_total", waiters)
        counter("reelections_total", reElections)
        let ways = escapes.map { ($0.key, $0.value) }
        counter("escapes_total", by: "reason", ways.sorted { $0.0 < $1.0 })
        counter("hit_for_miss_marks_total", hitForMissMarks)
        counter("shared_errors_total", sharedErrors)
        counter("origin_timeouts_total", timeouts)
        counter("refreshes_total", refreshes)
        counter("refresh_failures_total", refreshFailures)
        counter("disk_hits_total", diskHits)
        counter("removals_total", removals)
        counter("invalidations_total", invalidations)
        counter("evictions_total", evictions)
        let waits = "wait_milliseconds"
        metrics.add(histogram: waits, MetricHelp.text(waits), waitMilliseconds)
        func gauge(_ name: String, _ value: (StoreUsage) -> Int) {
            let rows = [("memory", memory), ("disk", disk)].map { tier, usage in
                (PrometheusText.label("tier", tier), Double(value(usage)))
            }
            metrics.add(name, .gauge, MetricHelp.text(name), rows)
        }
        gauge("entries") { $0.entries }
        gauge("bytes") { $0.bytes }
        gauge("capacity_bytes") { $0.capacityBytes }
        metrics.add("owed_removals", .gauge, MetricHelp.text("owed_removals"), owedRemovals)
        fleet?.add(to: &metrics)
        return metrics.text
    }
}
