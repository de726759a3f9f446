extension HTTPCache.Statistics {
    /// The rows in the order of `description`.
    static var table: [Statistic<Self>.Row] {
        [
            (
                "answers_total", .counter, "answers",
                "Responses to callers, by where they came from.",
                .values(by: "source") { all in
                    CacheInfo.Source.allCases.map { ($0.rawValue, all.answers[$0] ?? 0) }
                }
            ),
            (
                "origin_requests_total", .counter, "origin requests",
                "Requests sent to the origin.",
                .field(\.originRequests, .originRequests)
            ),
            (
                "origin_failures_total", .counter, "origin failures",
                "Requests to the origin that failed.",
                .field(\.originFailures, .originFailures)
            ),
            (
                "origin_timeouts_total", .counter, "origin timeouts",
                "Requests to the origin that took too long.",
                .field(\.timeouts, .timeouts)
            ),
            (
                "origin_bytes_total", .counter, "origin bytes",
                "Bytes of bodies received from the origin.",
                .field(\.originBytes, .originBytes)
            ),
            (
                "stored_total", .counter, "stored",
                "Responses that were stored.",
                .field(\.stored, .stored)
            ),
            (
                "refused_total", .counter, "not stored",
                "Responses that were not stored, by reason.",
                .values(by: "reason") { all in
                    rows(of: all.refusals.lazy.map { ($0.key.description, $0.value) })
                }
            ),
            (
                "flights_total", .counter, "shared fetches",
                "Fetches that other requests could share.",
                .field(\.flights, .flights)
            ),
            (
                "waiters_total", .counter, "requests that joined one",
                "Requests that waited for the fetch of another one.",
                .field(\.waiters, .waiters)
            ),
            (
                "reelections_total", .counter, "fetches taken over",
                "Fetches taken over by a request that had waited.",
                .field(\.reElections, .reElections)
            ),
            (
                "escapes_total", .counter, "left a shared fetch",
                "Requests that were sent to the origin alone, by reason.",
                .values(by: "reason") { all in rows(of: all.escapes.lazy.map { ($0.key, $0.value) })
                }
            ),
            (
                "hit_for_miss_marks_total", .counter, "keys not worth waiting for",
                "Keys marked as not worth waiting for.",
                .field(\.hitForMissMarks, .hitForMissMarks)
            ),
            (
                "shared_errors_total", .counter, "errors shared",
                "Fetches whose last attempt failed.",
                .field(\.sharedErrors, .sharedErrors)
            ),
            (
                "refreshes_total", .counter, "refreshes",
                "Refreshes after a response that was served already.",
                .field(\.refreshes, .refreshes)
            ),
            (
                "refresh_failures_total", .counter, "refreshes that failed",
                "Refreshes that failed.",
                .field(\.refreshFailures, .refreshFailures)
            ),
            (
                "disk_hits_total", .counter, "found on disk",
                "Entries found on disk, indexes of variants included.",
                .field(\.diskHits, .diskHits)
            ),
            (
                "disk_reads_refused_total", .counter, "reads that the disk refused",
                "Reads of the disk refused because too many waited.",
                .field(\.diskReadsRefused)
            ),
            (
                "disk_records_damaged_total", .counter, "records damaged on disk",
                "Records on disk that failed a check.",
                .field(\.diskRecordsDamaged)
            ),
            (
                "disk_segments_reclaimed_total", .counter, "segments reclaimed on disk",
                "Segments of the disk whose entries were dropped to make room.",
                .field(\.diskSegmentsReclaimed)
            ),
            (
                "disk_shards_failed", .gauge, "shards of the disk that failed",
                "Shards of the disk that store nothing because the device fails.",
                .field(\.diskShardsFailed)
            ),
            (
                "removals_total", .counter, "removals",
                "Removals by request, and entries removed by scope or tag.",
                .field(\.removals, .removals)
            ),
            (
                "invalidations_total", .counter, "invalidations",
                "Removals caused by unsafe methods.",
                .field(\.invalidations, .invalidations)
            ),
            (
                "evictions_total", .counter, "evictions",
                "Entries removed to make room.",
                .field(\.evictions)
            ),
            (
                "owed_removals", .gauge, "removals owed by the store",
                "Removals that a custom store has not carried out yet.",
                .field(\.owedRemovals)
            ),
            (
                "hook_failures_total", .counter, "hook failures",
                "Calls of the application's hooks that failed.",
                .field(\.hookFailures, .hookFailures)
            ),
            (
                "storage_errors_total", .counter, "storage errors",
                "Operations of the storage that failed.",
                .field(\.storageErrors, .storageErrors)
            ),
            (
                "entries", .gauge, nil,
                "Entries held, by tier.",
                .values(by: "tier") { $0.byTier { $0.entries } }
            ),
            (
                "bytes", .gauge, nil,
                "Bytes in use, by tier.",
                .values(by: "tier") { $0.byTier { $0.bytes } }
            ),
            (
                "capacity_bytes", .gauge, nil,
                "Bytes that may be in use, by tier.",
                .values(by: "tier") { $0.byTier { $0.capacityBytes } }
            ),
        ]
    }

    /// Takes over the counts of the disk.
    mutating func add(_ disk: DiskStatistics) {
        diskReadsRefused = disk.readsRefused
        diskRecordsDamaged = disk.recordsDamaged
        diskSegmentsReclaimed = disk.segmentsReclaimed
        diskShardsFailed = disk.shardsFailed
    }

    private static func rows(of counts: some Sequence<(String, Int)>) -> [(String, Int)] {
        counts.sorted { $0.0 < $1.0 }
    }

    private func byTier(_ value: (StoreUsage) -> Int) -> [(String, Int)] {
        [("memory", value(memory)), ("disk", value(disk))]
    }
}

extension FleetStatistics {
    fileprivate static var table: [Statistic<Self>.Row] {
        [
            (
                "fleet_linked", .gauge, nil,
                "1 while the log of the fleet is read, 0 while it cannot be.",
                .value { $0.isLinked ? 1 : 0 }
            ),
            (
                "fleet_lag_milliseconds", .gauge, nil,
                "Time since the fleet's log was last read to its end.",
                .value { $0.lagMilliseconds }
            ),
            (
                "fleet_suspended", .gauge, nil,
                "1 while a server of the fleet's log is not asked after failures.",
                .value { $0.isSuspended ? 1 : 0 }
            ),
            (
                "fleet_store_suspended", .gauge, nil,
                "1 while a server of the shared store is not asked.",
                .value { $0.isStoreSuspended ? 1 : 0 }
            ),
            (
                "fleet_commands_waiting", .gauge, nil,
                "Commands for servers of the fleet without an outcome.",
                .field(\.commandsWaiting)
            ),
            (
                "fleet_commands_refused_total", .counter, nil,
                "Commands that were not sent to servers of the fleet.",
                .field(\.commandsRefused)
            ),
            (
                "fleet_appended_total", .counter, nil,
                "Purges of this machine that the fleet's log has taken.",
                .field(\.appended)
            ),
            (
                "fleet_refused_total", .counter, nil,
                "Purges of this machine that the fleet's log has not taken.",
                .field(\.refused)
            ),
            (
                "fleet_applied_total", .counter, nil,
                "Purges of other machines that were applied here.",
                .field(\.applied)
            ),
            (
                "fleet_not_applied_total", .counter, nil,
                "Purges of other machines that the storage could not apply.",
                .field(\.notApplied)
            ),
            (
                "fleet_replays_total", .counter, nil,
                "Gaps in the fleet's log that were replayed.",
                .field(\.replays)
            ),
            (
                "fleet_restored_total", .counter, nil,
                "Purges that the fleet's log had lost and was given again.",
                .field(\.restored)
            ),
            (
                "fleet_all_marked_stale_total", .counter, nil,
                "Times that all entries were marked stale.",
                .field(\.allMarkedStale)
            ),
            (
                "fleet_cut_offs_total", .counter, nil,
                "Times that the fleet's log was not read within the lag.",
                .field(\.cutOffs)
            ),
            (
                "fleet_shared_hits_total", .counter, nil,
                "Look-ups in the fleet's shared store that found the response.",
                .field(\.sharedHits)
            ),
            (
                "fleet_shared_misses_total", .counter, nil,
                "Look-ups in the shared store before a request to the origin.",
                .field(\.sharedMisses)
            ),
            (
                "fleet_shared_waits_total", .counter, nil,
                "Look-ups that waited for the response of another machine.",
                .field(\.sharedWaits)
            ),
            (
                "fleet_shared_failures_total", .counter, nil,
                "Look-ups that a failure of the shared store ended.",
                .field(\.sharedFailures)
            ),
            (
                "fleet_shared_unreadable_total", .counter, nil,
                "Readings of shared records that were damaged.",
                .field(\.sharedUnreadable)
            ),
            (
                "fleet_published_total", .counter, nil,
                "Responses copied into the fleet's shared store.",
                .field(\.published)
            ),
            (
                "fleet_unpublished_total", .counter, nil,
                "Responses that the fleet's shared store has not taken.",
                .field(\.unpublished)
            ),
        ]
    }

    private var lagMilliseconds: Int {
        let (seconds, attoseconds) = lag.components
        return Int(clamping: seconds * 1_000 + attoseconds / 1_000_000_000_000_000)
    }
}

extension HTTPCache.Statistics {
    /// Every metric but the distribution of the waits, with its samples.
    public var metrics: [Metric] {
        let own = Self.table.map { Statistic(row: $0).metric(self) }
        guard let fleet else { return own }
        return own + FleetStatistics.table.map { Statistic(row: $0).metric(fleet) }
    }
}

extension HTTPCache.Statistics: CustomStringConvertible {
    /// A table with a line for each count that is not zero.
    public var description: String {
        var rows = [("hit ratio", Self.percent(hitRatio))]
        for row in Self.table {
            guard let title = row.title else { continue }
            for (value, count) in Statistic(row: row).samples(self) where count != 0 {
                rows.append((value.isEmpty ? title : "\(title), \(value)", String(count)))
            }
        }
        for (name, usage) in [("memory", memory), ("disk", disk)] where usage.capacityBytes > 0 {
            let text =
                "\(usage.entries) entries, \(usage.bytes) of \(usage.capacityBytes) bytes"
            rows.append((name, text))
        }
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { name, value in
            name + String(repeating: " ", count: width - name.count + 2) + value
        }.joined(separator: "\n")
    }

    private static func percent(_ share: Double) -> String {
        let tenths = Int((share * 1_000).rounded())
        return "\(tenths / 10).\(tenths % 10) %"
    }
}
