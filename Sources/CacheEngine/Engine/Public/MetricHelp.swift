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
        "waiters_total": "Requests that shared the fetch of another one.",
        "hit_for_miss_marks_total": "Keys marked as not worth waiting for.",
        "shared_errors_total": "Failures given to more than one request.",
        "origin_timeouts_total": "Requests to the origin that took too long.",
        "refreshes_total": "Refreshes behind a response that was served already.",
        "refresh_failures_total": "Refreshes that failed.",
        "disk_hits_total": "Entries read from behind the memory.",
        "hook_failures_total": "Calls of the application's hooks that failed.",
        "reelections_total": "Fetches taken over by a request that had waited.",
        "escapes_total": "Requests that left a shared fetch to ask for themselves, by reason.",
        "invalidations_total": "Removals caused by unsafe methods.",
        "evictions_total": "Entries removed to make room.",
        "wait_milliseconds": "Time that requests waited for the fetch of another one.",
        "entries": "Entries held, by tier.",
        "bytes": "Bytes in use, by tier.",
        "capacity_bytes": "Bytes that may be in use, by tier.",
        "fleet_linked": "1 while the log of the fleet is read, 0 while it cannot be.",
        "fleet_lag_milliseconds": "Time since the fleet's log was last read to its end.",
        "fleet_suspended": "1 while a server of the fleet's log is not asked after failures.",
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
        "fleet_shared_unreadable_total": "Shared records that were damaged or of another version.",
        "fleet_published_total": "Responses copied into the fleet's shared store.",
        "fleet_unpublished_total": "Responses that the fleet's shared store has not taken.",
        "removals_total": "Removals and purges asked for.",
    ]
}
