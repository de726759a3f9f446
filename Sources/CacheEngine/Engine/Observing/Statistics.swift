/// What a cache has done since it was made, and what it holds.
public struct Statistics: Sendable {
    /// Requests answered, by where the answer came from.
    public var answers: [CacheInfo.Source: Int] = [:]
    /// Requests sent to the origin.
    public var originRequests = 0
    /// Of those, the ones that failed.
    public var originFailures = 0
    /// Body bytes received from the origin.
    public var originBytes = 0
    /// Answers stored.
    public var stored = 0
    /// Answers not stored, by reason.
    public var refusals: [StoreRefusalReason: Int] = [:]
    /// Calls of the `willStore` hook that threw or took too long.
    public var hookFailures = 0
    /// Store operations that failed.
    public var storageErrors = 0
    /// Origin fetches that others could join.
    public var flights = 0
    /// Requests that waited for somebody else's fetch.
    public var waiters = 0
    /// Waiters that took over from a leader that failed.
    public var reElections = 0
    /// Requests that left a crowd, by reason.
    public var escapes: [String: Int] = [:]
    /// Keys marked because their answer could not be shared.
    public var hitForMissMarks = 0
    /// Crowds whose every attempt failed.
    public var sharedErrors = 0
    /// Fetches that were given up because the origin sent nothing for too long.
    public var timeouts = 0
    /// Background refreshes, and those that failed.
    public var refreshes = 0
    /// Background refreshes that failed.
    public var refreshFailures = 0
    /// Stored answers found on disk.
    public var diskHits = 0
    /// Entries removed by hand, and by unsafe methods.
    public var removals = 0
    /// Entries removed because an unsafe method succeeded.
    public var invalidations = 0
    /// Entries that memory gave up for others.
    public var evictions = 0
    /// How long waiters waited, by upper bound in milliseconds.
    public var waitMilliseconds: [(upperBound: Double, count: Int)] = []
    /// What memory holds.
    public var memory = StoreUsage()
    /// What the disk holds.
    public var disk = StoreUsage()

    /// The share of answers that needed no origin.
    public var hitRatio: Double {
        let hits = (answers[.fresh] ?? 0) + (answers[.stale] ?? 0)
        let all = answers.values.reduce(0, +)
        return all == 0 ? 0 : Double(hits) / Double(all)
    }
}

extension Statistics {
    /// The counters in the Prometheus text format, each name behind `prefix`.
    public func prometheusText(prefix: String = "cache") -> String {
        var text = ""
        func metric(_ name: String, _ kind: String, _ rows: [(labels: String, value: Double)]) {
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
        return text
    }

    private func histogram(_ prefix: String) -> String {
        var text = "# TYPE \(prefix)_wait_milliseconds histogram\n"
        var sum = 0
        for (bound, count) in waitMilliseconds {
            sum += count
            let label = bound.isFinite ? Self.number(bound) : "+Inf"
            text += "\(prefix)_wait_milliseconds_bucket{le=\"\(label)\"} \(sum)\n"
        }
        return text + "\(prefix)_wait_milliseconds_count \(sum)\n"
    }

    /// A label's value as the text format wants it: `\`, `"` and line feeds escaped.
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
