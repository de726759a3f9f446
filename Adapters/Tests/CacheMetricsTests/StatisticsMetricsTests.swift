import CacheEngine
import CacheMetrics
import CacheTestSupport
import Metrics
import MetricsTestKit
import Testing

/// The metrics say what the statistics say.
@Suite(.timeLimit(.minutes(1))) struct StatisticsMetricsTests {
    private let seen = TestMetrics()

    @Test func aCacheIsCounted() async throws {
        let cache = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(16)),
            origin: ScriptedOrigin(body: "hello")
        )
        let metrics = StatisticsMetrics(factory: seen)
        let request = CacheRequest(url: "http://example.test/a")
        for _ in 0..<3 { _ = try await cache.respond(to: request).body.collect() }
        await cache.waitUntilIdle()
        metrics.update(await cache.statistics)
        #expect(try total("cache_origin_requests_total") == 1)
        #expect(try total("cache_origin_bytes_total") == 5)
        #expect(try total("cache_answers_total", [("source", "origin")]) == 1)
        #expect(try total("cache_answers_total", [("source", "fresh")]) == 2)
        #expect(try level("cache_entries", [("tier", "memory")]) == 1)
        #expect(try level("cache_capacity_bytes", [("tier", "memory")]) > 0)

        _ = try await cache.respond(to: request).body.collect()
        metrics.update(await cache.statistics)
        #expect(try total("cache_origin_requests_total") == 1)
        #expect(try total("cache_answers_total", [("source", "fresh")]) == 3)
        await cache.shutDown()
    }

    @Test func aCounterGetsOnlyItsGrowth() async throws {
        let metrics = StatisticsMetrics(factory: seen)
        var statistics = try await Self.empty()
        for evictions in [0, 3, 3, 10] {
            statistics.evictions = evictions
            metrics.update(statistics)
        }
        let counter = try seen.expectCounter("cache_evictions_total")
        #expect(counter.values == [0, 3, 7])
    }

    @Test func reasonsAreDimensions() async throws {
        var statistics = try await Self.empty()
        statistics.refusals = [Self.noStore: 2, Self.vary: 1]
        statistics.escapes = ["timeout": 4]
        StatisticsMetrics(prefix: "p", factory: seen).update(statistics)
        #expect(try total("p_refused_total", [("reason", "no-store")]) == 2)
        #expect(try total("p_refused_total", [("reason", "vary")]) == 1)
        #expect(try total("p_escapes_total", [("reason", "timeout")]) == 4)
    }

    /// Every value differs, so no two metrics can be exchanged.
    @Test func everyMetricHasTheValueOfThePrometheusText() async throws {
        let statistics = try await Self.distinct()
        StatisticsMetrics(factory: seen).update(statistics)
        var values: [String: Double] = [:]
        for counter in seen.counters {
            values[Self.line(counter.label, counter.dimensions)] = Double(counter.totalValue)
        }
        for meter in seen.meters {
            values[Self.line(meter.label, meter.dimensions)] = meter.lastValue
        }
        var expected: [String: Double] = [:]
        for line in statistics.prometheusText().split(separator: "\n")
        where !line.hasPrefix("#") && !line.hasPrefix("cache_wait_milliseconds") {
            let end = try #require(line.lastIndex(of: " "))
            expected[String(line[..<end])] = Double(line[line.index(after: end)...])
        }
        #expect(values == expected)
        #expect(expected.count > 40)
    }

    private static let noStore = StoreRefusalReason("no-store")
    private static let vary = StoreRefusalReason("vary")

    private func total(_ label: String, _ dimensions: [(String, String)] = []) throws -> Int64 {
        try seen.expectCounter(label, dimensions).totalValue
    }

    private func level(_ label: String, _ dimensions: [(String, String)]) throws -> Double {
        try #require(try seen.expectMeter(label, dimensions).lastValue)
    }

    private static func line(_ label: String, _ dimensions: [(String, String)]) -> String {
        guard let (name, value) = dimensions.first else { return label }
        return "\(label){\(name)=\"\(value)\"}"
    }

    /// The statistics of a cache that has answered nothing.
    private static func empty() async throws -> HTTPCache.Statistics {
        let cache = try await HTTPCache(origin: ScriptedOrigin())
        let statistics = await cache.statistics
        await cache.shutDown()
        return statistics
    }

    /// Statistics whose counts all differ.
    private static func distinct() async throws -> HTTPCache.Statistics {
        var statistics = try await empty()
        var count = 0
        func next() -> Int {
            count += 1
            return count
        }
        for source in CacheInfo.Source.allCases { statistics.answers[source] = next() }
        statistics.refusals = [noStore: next(), vary: next()]
        statistics.escapes = ["timeout": next()]
        let totals: [WritableKeyPath<HTTPCache.Statistics, Int>] = [
            \.originRequests, \.originFailures, \.originBytes, \.stored, \.hookFailures,
            \.storageErrors, \.flights, \.waiters, \.reElections, \.hitForMissMarks,
            \.sharedErrors, \.timeouts, \.refreshes, \.refreshFailures, \.diskHits, \.removals,
            \.invalidations, \.evictions, \.owedRemovals, \.diskReadsRefused,
            \.diskRecordsDamaged, \.diskSegmentsReclaimed, \.diskShardsFailed,
        ]
        for total in totals { statistics[keyPath: total] = next() }
        statistics.memory = StoreUsage(entries: next(), bytes: next(), capacityBytes: next())
        statistics.disk = StoreUsage(entries: next(), bytes: next(), capacityBytes: next())
        var fleet = FleetStatistics()
        fleet.isLinked = true
        fleet.isStoreSuspended = true
        fleet.lag = .milliseconds(1_500)
        let fleetTotals: [WritableKeyPath<FleetStatistics, Int>] = [
            \.commandsWaiting, \.commandsRefused, \.appended, \.refused, \.applied,
            \.notApplied, \.replays, \.restored, \.allMarkedStale, \.cutOffs, \.sharedHits,
            \.sharedMisses, \.sharedWaits, \.sharedFailures, \.sharedUnreadable, \.published,
            \.unpublished,
        ]
        for total in fleetTotals { fleet[keyPath: total] = next() }
        statistics.fleet = fleet
        return statistics
    }
}
