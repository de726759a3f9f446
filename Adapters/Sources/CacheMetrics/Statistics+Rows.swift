import CacheEngine

extension HTTPCache.Statistics {
    /// The counts that only grow.
    var counters: [(Row, Int)] {
        var rows = Self.totals.map { (Row(name: $0), self[keyPath: $1]) }
        for source in CacheInfo.Source.allCases {
            let row = Row(name: "answers_total", dimension: "source", value: source.rawValue)
            rows.append((row, answers[source] ?? 0))
        }
        for (reason, count) in refusals {
            let row = Row(name: "refused_total", dimension: "reason", value: reason.description)
            rows.append((row, count))
        }
        for (reason, count) in escapes {
            rows.append((Row(name: "escapes_total", dimension: "reason", value: reason), count))
        }
        if let fleet {
            rows += FleetStatistics.totals.map { (Row(name: $0), fleet[keyPath: $1]) }
        }
        return rows
    }

    /// The values that rise and fall.
    var meters: [(Row, Double)] {
        var rows: [(Row, Double)] = []
        for (tier, usage) in [("memory", memory), ("disk", disk)] {
            for (name, value) in [
                ("entries", usage.entries), ("bytes", usage.bytes),
                ("capacity_bytes", usage.capacityBytes),
            ] {
                rows.append((Row(name: name, dimension: "tier", value: tier), Double(value)))
            }
        }
        rows.append((Row(name: "owed_removals"), Double(owedRemovals)))
        guard let fleet else { return rows }
        let fleetRows: [(Row, Double)] = [
            (Row(name: "fleet_linked"), fleet.isLinked ? 1 : 0),
            (Row(name: "fleet_lag_milliseconds"), (fleet.lag / .milliseconds(1)).rounded(.down)),
            (Row(name: "fleet_suspended"), fleet.isSuspended ? 1 : 0),
            (Row(name: "fleet_store_suspended"), fleet.isStoreSuspended ? 1 : 0),
            (Row(name: "fleet_commands_waiting"), Double(fleet.commandsWaiting)),
        ]
        return rows + fleetRows
    }

    private static var totals: [(String, KeyPath<Self, Int>)] {
        [
            ("origin_requests_total", \.originRequests),
            ("origin_failures_total", \.originFailures),
            ("origin_bytes_total", \.originBytes),
            ("stored_total", \.stored),
            ("hook_failures_total", \.hookFailures),
            ("storage_errors_total", \.storageErrors),
            ("flights_total", \.flights),
            ("waiters_total", \.waiters),
            ("reelections_total", \.reElections),
            ("hit_for_miss_marks_total", \.hitForMissMarks),
            ("shared_errors_total", \.sharedErrors),
            ("origin_timeouts_total", \.timeouts),
            ("refreshes_total", \.refreshes),
            ("refresh_failures_total", \.refreshFailures),
            ("disk_hits_total", \.diskHits),
            ("removals_total", \.removals),
            ("invalidations_total", \.invalidations),
            ("evictions_total", \.evictions),
        ]
    }
}

extension FleetStatistics {
    fileprivate static var totals: [(String, KeyPath<Self, Int>)] {
        [
            ("fleet_commands_refused_total", \.commandsRefused),
            ("fleet_appended_total", \.appended),
            ("fleet_refused_total", \.refused),
            ("fleet_applied_total", \.applied),
            ("fleet_not_applied_total", \.notApplied),
            ("fleet_replays_total", \.replays),
            ("fleet_restored_total", \.restored),
            ("fleet_all_marked_stale_total", \.allMarkedStale),
            ("fleet_cut_offs_total", \.cutOffs),
            ("fleet_shared_hits_total", \.sharedHits),
            ("fleet_shared_misses_total", \.sharedMisses),
            ("fleet_shared_waits_total", \.sharedWaits),
            ("fleet_shared_failures_total", \.sharedFailures),
            ("fleet_shared_unreadable_total", \.sharedUnreadable),
            ("fleet_published_total", \.published),
            ("fleet_unpublished_total", \.unpublished),
        ]
    }
}
