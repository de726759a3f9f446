extension HTTPCache.Statistics: CustomStringConvertible {
    /// A table with a line for each count that is not zero.
    public var description: String {
        var rows = [("hit ratio", Self.percent(hitRatio))]
        func add(_ name: String, _ count: Int) {
            if count != 0 { rows.append((name, String(count))) }
        }
        for source in CacheInfo.Source.allCases {
            add("answers, \(source.rawValue)", answers[source] ?? 0)
        }
        add("origin requests", originRequests)
        add("origin failures", originFailures)
        add("origin timeouts", timeouts)
        add("origin bytes", originBytes)
        add("stored", stored)
        for (reason, count) in refusals.map({ ($0.key.description, $0.value) }).sorted(by: <) {
            add("not stored, \(reason)", count)
        }
        add("shared fetches", flights)
        add("requests that joined one", waiters)
        add("fetches taken over", reElections)
        for (reason, count) in escapes.sorted(by: { $0.key < $1.key }) {
            add("left a shared fetch, \(reason)", count)
        }
        add("keys not worth waiting for", hitForMissMarks)
        add("errors shared", sharedErrors)
        add("refreshes", refreshes)
        add("refreshes that failed", refreshFailures)
        add("found on disk", diskHits)
        add("removals", removals)
        add("invalidations", invalidations)
        add("evictions", evictions)
        add("removals owed by the store", owedRemovals)
        add("hook failures", hookFailures)
        add("storage errors", storageErrors)
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
