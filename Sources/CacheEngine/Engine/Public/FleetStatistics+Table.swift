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
