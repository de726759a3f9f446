/// A row in the table of statistics: a metric, its title, and where its samples come from.
///
/// The text of Prometheus, `description`, the metrics for adapters and the copying of the counters
/// go over the tables.
struct Statistic<Owner> {
    /// `title` is the one in `description`; `nil` if there is no row.
    typealias Row = (
        name: String, kind: HTTPCache.Statistics.Metric.Kind, title: String?, help: String,
        source: Source
    )

    enum Source {
        /// The field has the count, which is copied from the counter if there is one.
        case field(WritableKeyPath<Owner, Int>, Counter? = nil)
        case value((Owner) -> Int)
        case values(by: String, (Owner) -> [(label: String, value: Int)])
    }

    let row: Row

    func samples(_ owner: Owner) -> [(label: String, value: Int)] {
        switch row.source {
        case .field(let field, _): [("", owner[keyPath: field])]
        case .value(let value): [("", value(owner))]
        case .values(_, let values): values(owner)
        }
    }

    func metric(_ owner: Owner) -> HTTPCache.Statistics.Metric {
        var label: String?
        if case .values(let by, _) = row.source { label = by }
        return HTTPCache.Statistics.Metric(
            name: row.name,
            kind: row.kind,
            help: row.help,
            label: label,
            samples: samples(owner).map { .init(label: $0, value: $1) }
        )
    }
}
