/// Metrics in the Prometheus text format.
package struct PrometheusText {
    package enum Kind: String {
        case counter, gauge, histogram
    }

    /// A sample: its labels, in braces or empty, and its value.
    package typealias Row = (labels: String, value: Double)

    package private(set) var text = ""
    /// Precedes each name, with an underscore.
    private let prefix: String

    package init(prefix: String) { self.prefix = prefix }

    /// Adds a metric of one sample.
    package mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: Int) {
        add(name, kind, help, [("", Double(value))])
    }

    /// Adds a metric and its samples.
    package mutating func add(_ name: String, _ kind: Kind, _ help: String, _ rows: [Row]) {
        begin(name, kind, help)
        for row in rows { addRow("\(name)\(row.labels)", row.value) }
    }

    /// Adds the counts of a histogram by their upper bounds, and their sum.
    package mutating func add(
        histogram name: String,
        _ help: String,
        _ counts: [(upperBound: Double, count: Int)]
    ) {
        begin(name, .histogram, help)
        var sum = 0
        for (bound, count) in counts {
            sum += count
            let label = bound.isFinite ? Self.number(bound) : "+Inf"
            addRow("\(name)_bucket{le=\"\(label)\"}", Double(sum))
        }
        addRow("\(name)_count", Double(sum))
    }

    private mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
        text += "# HELP \(prefix)_\(name) \(help)\n# TYPE \(prefix)_\(name) \(kind.rawValue)\n"
    }

    private mutating func addRow(_ name: String, _ value: Double) {
        text += "\(prefix)_\(name) \(Self.number(value))\n"
    }

    /// A label in braces; `\`, `"` and line feeds of the value are escaped.
    package static func label(_ name: String, _ value: String) -> String {
        var escaped = ""
        for character in value.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return "{\(name)=\"\(escaped)\"}"
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
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

extension FleetStatistics {
    /// Adds the counters to those of the cache.
    func add(to metrics: inout PrometheusText) {
        let (seconds, attoseconds) = lag.components
        let milliseconds = seconds * 1_000 + attoseconds / 1_000_000_000_000_000
        let rows: [(name: String, kind: PrometheusText.Kind, value: Int)] = [
            ("fleet_linked", .gauge, isLinked ? 1 : 0),
            ("fleet_lag_milliseconds", .gauge, Int(clamping: milliseconds)),
            ("fleet_suspended", .gauge, isSuspended ? 1 : 0),
            ("fleet_store_suspended", .gauge, isStoreSuspended ? 1 : 0),
            ("fleet_commands_waiting", .gauge, commandsWaiting),
            ("fleet_commands_refused_total", .counter, commandsRefused),
            ("fleet_appended_total", .counter, appended),
            ("fleet_refused_total", .counter, refused),
            ("fleet_applied_total", .counter, applied),
            ("fleet_not_applied_total", .counter, notApplied),
            ("fleet_replays_total", .counter, replays),
            ("fleet_restored_total", .counter, restored),
            ("fleet_all_marked_stale_total", .counter, allMarkedStale),
            ("fleet_cut_offs_total", .counter, cutOffs),
            ("fleet_shared_hits_total", .counter, sharedHits),
            ("fleet_shared_misses_total", .counter, sharedMisses),
            ("fleet_shared_waits_total", .counter, sharedWaits),
            ("fleet_shared_failures_total", .counter, sharedFailures),
            ("fleet_shared_unreadable_total", .counter, sharedUnreadable),
            ("fleet_published_total", .counter, published),
            ("fleet_unpublished_total", .counter, unpublished),
        ]
        for row in rows { metrics.add(row.name, row.kind, MetricHelp.text(row.name), row.value) }
    }
}

/// The help texts of the metrics of `HTTPCache.Statistics.prometheusText`, one sentence each.
enum MetricHelp {
    /// The help text of a metric; its name in words if the table has none.
    static func text(_ name: String) -> String {
        sentences[name] ?? name.split(separator: "_").joined(separator: " ") + "."
    }

    private static let sentences = [
        "answers_total": "Responses to callers, by where they came from.",
        "origin_requests_total": "Requests sent to the origin.",
        "origin_failures_total": "Requests to the origin that failed.",
        "origin_bytes_total": "Bytes of bodies received from the origin.",
        "stored_total": "Responses that were stored.",
        "refused_total": "Responses that were not stored, by reason.",
        "storage_errors_total": "Operations of the storage that failed.",
        "flights_total": "Fetches that other requests could share.",
        "waiters_total": "Requests that waited for the fetch of another one.",
        "hit_for_miss_marks_total": "Keys marked as not worth waiting for.",
        "shared_errors_total": "Fetches whose last attempt failed.",
        "origin_timeouts_total": "Requests to the origin that took too long.",
        "refreshes_total": "Refreshes behind a response that was served already.",
        "refresh_failures_total": "Refreshes that failed.",
        "disk_hits_total": "Entries found on disk, indexes of variants included.",
        "hook_failures_total": "Calls of the application's hooks that failed.",
        "reelections_total": "Fetches taken over by a request that had waited.",
        "escapes_total": "Requests that were sent to the origin alone, by reason.",
        "invalidations_total": "Removals caused by unsafe methods.",
        "owed_removals": "Removals that a custom store has not carried out yet.",
        "evictions_total": "Entries removed to make room.",
        "wait_milliseconds": "Time that requests waited for the fetch of another one.",
        "entries": "Entries held, by tier.",
        "bytes": "Bytes in use, by tier.",
        "capacity_bytes": "Bytes that may be in use, by tier.",
        "fleet_linked": "1 while the log of the fleet is read, 0 while it cannot be.",
        "fleet_lag_milliseconds": "Time since the fleet's log was last read to its end.",
        "fleet_suspended": "1 while a server of the fleet's log is not asked after failures.",
        "fleet_store_suspended": "1 while a server of the shared store is not asked.",
        "fleet_commands_waiting": "Commands for servers of the fleet without an outcome.",
        "fleet_commands_refused_total": "Commands that were not sent to servers of the fleet.",
        "fleet_appended_total": "Purges of this machine that the fleet's log has taken.",
        "fleet_refused_total": "Purges of this machine that the fleet's log has not taken.",
        "fleet_applied_total": "Purges of other machines that were applied here.",
        "fleet_not_applied_total": "Purges of other machines that the storage could not apply.",
        "fleet_replays_total": "Gaps in the fleet's log that were replayed.",
        "fleet_restored_total": "Purges that the fleet's log had lost and was given again.",
        "fleet_all_marked_stale_total": "Times that all entries were marked stale.",
        "fleet_cut_offs_total": "Times that the fleet's log was not read within the lag.",
        "fleet_shared_hits_total": "Look-ups in the fleet's shared store that found the response.",
        "fleet_shared_misses_total": "Look-ups in the shared store before a request to the origin.",
        "fleet_shared_waits_total": "Look-ups that waited for the response of another machine.",
        "fleet_shared_failures_total": "Look-ups that a failure of the shared store ended.",
        "fleet_shared_unreadable_total": "Readings of shared records that were damaged.",
        "fleet_published_total": "Responses copied into the fleet's shared store.",
        "fleet_unpublished_total": "Responses that the fleet's shared store has not taken.",
        "removals_total": "Removals by request, and entries removed by scope or tag.",
    ]
}
