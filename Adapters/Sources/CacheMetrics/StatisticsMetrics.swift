public import CacheEngine
public import Metrics
import Synchronization

/// The statistics of a cache as metrics, under the names of `prometheusText`.
///
///     let metrics = StatisticsMetrics()
///     metrics.update(await cache.statistics)
///
/// Call `update` at the interval of the metrics' reader. The distribution of waits is left out,
/// because swift-metrics has no histogram that takes counts.
public final class StatisticsMetrics: Sendable {
    private let prefix: String
    private let factory: any MetricsFactory
    /// The totals that the counters have.
    private let passedOn = Mutex<[Row: Int]>([:])

    /// Creates the metrics of one cache, each name preceded by `prefix`.
    public init(prefix: String = "cache", factory: any MetricsFactory = MetricsSystem.factory) {
        self.prefix = prefix
        self.factory = factory
    }

    /// Passes on the current statistics of the cache.
    ///
    /// A counter is increased by its growth since the last call, a meter is set.
    public func update(_ current: HTTPCache.Statistics) {
        passedOn.withLock { passedOn in
            for (row, total) in Self.rows(of: current, .counter) {
                // A metric exists from the first call, also while its count is zero.
                let growth = total - (passedOn[row] ?? 0)
                guard growth > 0 || passedOn[row] == nil else { continue }
                passedOn[row] = total
                Counter(label: label(row), dimensions: row.dimensions, factory: factory)
                    .increment(by: growth)
            }
        }
        for (row, value) in Self.rows(of: current, .gauge) {
            Meter(label: label(row), dimensions: row.dimensions, factory: factory)
                .set(Double(value))
        }
    }

    private static func rows(
        of statistics: HTTPCache.Statistics,
        _ kind: HTTPCache.Statistics.Metric.Kind
    ) -> [(Row, Int)] {
        statistics.metrics.filter { $0.kind == kind }.flatMap { metric in
            metric.samples.map { sample in
                let dimension = metric.label ?? ""
                return (
                    Row(name: metric.name, dimension: dimension, value: sample.label), sample.value
                )
            }
        }
    }

    private func label(_ row: Row) -> String { "\(prefix)_\(row.name)" }
}

/// The name of a metric, and its dimension if it has one.
private struct Row: Hashable, Sendable {
    let name: String
    let dimension: String
    let value: String

    var dimensions: [(String, String)] { dimension.isEmpty ? [] : [(dimension, value)] }
}
