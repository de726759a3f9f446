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
        /// The requests that left a shared fetch, by reason.
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
        /// The stored responses found on disk.
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
        var text = ""
        func metric(_ name: String, _ kind: String, _ rows: [(labels: String, value: Double)]) {
            text += "# HELP \(prefix)_\(name) \(MetricHelp.text(name))\n"
            text += "# TYPE \(prefix)_\(name) \(kind)\n"
            for row in rows { text += "\(prefix)_\(name)\(row.labels) \(Self.number(row.value))\n" }
        }
        func counter(_ name: String, _ value: Int) {
            metric(name, "counter", [("", Double(value))])
        }
        metric(
            "answers_total",
            "counter",
            CacheInfo.Source.allCases.map {
                ("{source=\"\($0.rawValue)\"}", Double(answers[$0] ?? 0))
            }
        )
        counter("origin_requests_total", originRequests)
        counter("origin_failures_total", originFailures)
        counter("origin_bytes_total", originBytes)
        counter("stored_total", stored)
        metric(
            "refused_total",
            "counter",
            refusals.sorted { $0.key.description < $1.key.description }.map {
                ("{reason=\"\(Self.label($0.key.description))\"}", Double($0.value))
            }
        )
        counter("hook_failures_total", hookFailures)
        counter("storage_errors_total", storageErrors)
        counter("flights_total", flights)
        counter("waiters_total", waiters)
        counter("reelections_total", reElections)
        metric(
            "escapes_total",
            "counter",
            escapes.sorted { $0.key < $1.key }.map {
                ("{reason=\"\(Self.label($0.key))\"}", Double($0.value))
            }
        )
        counter("hit_for_miss_marks_total", hitForMissMarks)
        counter("shared_errors_total", sharedErrors)
        counter("origin_timeouts_total", timeouts)
        counter("refreshes_total", refreshes)
        counter("refresh_failures_total", refreshFailures)
        counter("disk_hits_total", diskHits)
        counter("removals_total", removals)
        counter("invalidations_total", invalidations)
        counter("evictions_total", evictions)
        text += histogram(prefix)
        func gauge(_ name: String, _ value: (StoreUsage) -> Int) {
            let rows = [("memory", memory), ("disk", disk)]
            metric(name, "gauge", rows.map { ("{tier=\"\($0.0)\"}", Double(value($0.1))) })
        }
        gauge("entries") { $0.entries }
        gauge("bytes") { $0.bytes }
        gauge("capacity_bytes") { $0.capacityBytes }
        return text + (fleet?.prometheusText(prefix: prefix) ?? "")
    }

    private func histogram(_ prefix: String) -> String {
        let name = "wait_milliseconds"
        var text = "# HELP \(prefix)_\(name) \(MetricHelp.text(name))\n"
        text += "# TYPE \(prefix)_\(name) histogram\n"
        var sum = 0
        for (bound, count) in waitMilliseconds {
            sum += count
            let label = bound.isFinite ? Self.number(bound) : "+Inf"
            text += "\(prefix)_wait_milliseconds_bucket{le=\"\(label)\"} \(sum)\n"
        }
        return text + "\(prefix)_wait_milliseconds_count \(sum)\n"
    }

    /// A label's value in the text format: `\`, `"` and line feeds are escaped.
    private static func label(_ text: String) -> String {
        var label = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": label += "\\\\"
            case "\"": label += "\\\""
            case "\n": label += "\\n"
            default: label.unicodeScalars.append(character)
            }
        }
        return label
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}
