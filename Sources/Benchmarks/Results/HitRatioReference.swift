import CacheEngine

/// Hit ratios of other policies on the same traces, recorded with libCacheSim.
///
/// A cell is one trace at one cache size. `Belady` and `BeladySize` know the future, so they are
/// bounds and not competitors.
package struct HitRatioReference: Sendable {
    /// The hit ratios of each policy for one trace at one cache size.
    package struct Cell: Sendable {
        package let trace: String
        /// The cache's size as a share of all distinct bytes.
        package let fraction: Double
        /// The hit ratios by requests and by bytes, for each policy.
        package fileprivate(set) var policies: [String: (requests: Double, bytes: Double)] = [:]

        /// The best policy that does not know the future.
        package var best: (policy: String, requests: Double)? {
            policies.filter { !$0.key.hasPrefix("Belady") }
                .max { ($0.value.requests, $1.key) < ($1.value.requests, $0.key) }
                .map { ($0.key, $0.value.requests) }
        }
    }

    package private(set) var cells: [Cell] = []

    /// Parses lines `trace,percent,policy,request,byte`, with ratios in percent.
    package init(parsing text: String) throws {
        for (number, line) in text.split(separator: "\n").enumerated() {
            let fields = line.split(separator: ",", omittingEmptySubsequences: false)
            if number == 0, fields.first == "trace" { continue }
            guard fields.count == 5, let percent = Double(fields[1]),
                let requests = Double(fields[3])
            else {
                throw UsageError(
                    "line \(number + 1) is not trace,percent,policy,request,byte: "
                        + "`\(PlainText.excerpt(line))`"
                )
            }
            // If all objects have the same size, the two ratios are equal.
            let bytes = fields[4].isEmpty ? requests : Double(fields[4])
            guard let bytes else {
                throw UsageError(
                    "line \(number + 1): `\(PlainText.excerpt(fields[4]))` is not a byte hit ratio"
                )
            }
            add(
                String(fields[0]),
                percent / 100,
                String(fields[2]),
                (requests / 100, bytes / 100)
            )
        }
        guard !cells.isEmpty else { throw UsageError("the file has no hit ratios") }
    }

    private mutating func add(
        _ trace: String,
        _ fraction: Double,
        _ policy: String,
        _ ratios: (requests: Double, bytes: Double)
    ) {
        let index = cells.firstIndex { $0.trace == trace && $0.fraction == fraction }
        if let index {
            cells[index].policies[policy] = ratios
        } else {
            cells.append(Cell(trace: trace, fraction: fraction, policies: [policy: ratios]))
        }
    }
}

/// Our hit ratios compared with the reference, cell by cell, in percentage points.
package struct HitRatioScore: Sendable {
    /// One cell of the reference with our hit ratios.
    package struct Row: Sendable {
        package let cell: HitRatioReference.Cell
        package let requests: Double
        package let bytes: Double

        package init(cell: HitRatioReference.Cell, requests: Double, bytes: Double) {
            self.cell = cell
            self.requests = requests
            self.bytes = bytes
        }

        /// Our distance from the best practical policy in points, negative if we are ahead.
        package var pointsBehindBest: Double { ((cell.best?.requests ?? 0) - requests) * 100 }
        /// Our byte hit ratio minus that of LRU, in points.
        package var bytePointsOverLRU: Double? {
            cell.policies["LRU"].map { (bytes - $0.bytes) * 100 }
        }
    }

    package let rows: [Row]

    package init(_ rows: [Row]) { self.rows = rows }

    package var meanPointsBehindBest: Double {
        rows.map(\.pointsBehindBest).reduce(0, +) / Double(max(1, rows.count))
    }

    /// The largest distance from the best practical policy in points.
    ///
    /// Only cells whose cache holds at least a hundredth of the objects' bytes count.
    package var worstPointsBehindBest: Double {
        rows.filter { $0.cell.fraction >= 0.01 }.map(\.pointsBehindBest).max() ?? 0
    }

    package var meanBytePointsOverLRU: Double {
        let points = rows.compactMap(\.bytePointsOverLRU)
        return points.reduce(0, +) / Double(max(1, points.count))
    }

    package var text: String {
        var table = TextTable([
            ("trace", .left), ("cache", .right), ("requests", .right), ("best of them", .right),
            ("", .left), ("behind", .right), ("bytes", .right), ("over LRU", .right),
        ])
        var previous = ""
        for row in rows {
            let name = row.cell.trace == previous ? "" : row.cell.trace
            previous = row.cell.trace
            table.append([
                name,
                "\((row.cell.fraction * 100).shortest) %",
                "\((row.requests * 100).fixed(2)) %",
                "\(((row.cell.best?.requests ?? 0) * 100).fixed(2)) %",
                row.cell.best?.policy ?? "",
                row.pointsBehindBest.fixed(2),
                "\((row.bytes * 100).fixed(2)) %",
                row.bytePointsOverLRU?.fixed(2) ?? "",
            ])
        }
        return table.text
    }

    /// The summary as rows of a result, to be compared with the targets.
    package var measurements: [Measurement] {
        func row(
            _ quantity: String,
            _ value: Double,
            _ better: Measurement.Direction
        ) -> Measurement {
            Measurement(
                workload: "hit-ratio",
                quantity: quantity,
                unit: .share,
                better: better,
                rounds: Rounds([value])
            )
        }
        return [
            row("mean_points_behind_best", meanPointsBehindBest, .lower),
            row("worst_points_behind_best", worstPointsBehindBest, .lower),
            row("mean_byte_points_over_lru", meanBytePointsOverLRU, .higher),
        ]
    }
}
