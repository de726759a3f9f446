package import CacheEngine

/// Replays every cell of a reference whose trace is in the directory.
package struct HitRatioReplays {
    private let reference: HitRatioReference
    private let paths: [(trace: String, path: String)]
    /// Traces of the reference that the directory does not contain.
    package let missing: [String]

    package init(directory: String, reference: HitRatioReference) {
        self.reference = reference
        let files = ScratchDirectory.files(below: directory).map(\.path)
        var names: [String] = []
        for cell in reference.cells where !names.contains(cell.trace) { names.append(cell.trace) }
        let found = names.map { name in
            (name, files.first { ReplayReport.traceName($0) == name })
        }
        paths = found.compactMap { name, path in path.map { (name, $0) } }
        missing = found.filter { $0.1 == nil }.map(\.0)
    }

    /// Replays every cell under `policy`, or under the default policy if it is `nil`.
    ///
    /// `progress` is called with each step, and now and then, with the share of the cells that is
    /// done.
    package func run(
        policy: EvictionPolicy?,
        progress: (_ step: String, _ share: Double) -> Void
    ) throws -> (score: HitRatioScore, measurements: [Measurement]) {
        guard !paths.isEmpty else {
            throw UsageError(
                "The directory of the traces has none of \(missing.joined(separator: ", "))"
            )
        }
        var rows: [HitRatioScore.Row] = []
        var measurements: [Measurement] = []
        let names = paths.map(\.trace)
        let cellCount = Double(reference.cells.count { names.contains($0.trace) })
        for (name, path) in paths {
            progress("reading \(name)", Double(rows.count) / cellCount)
            let trace = try RequestTrace(path: path)
            for cell in reference.cells where cell.trace == name {
                var options = TraceReplay.Options(capacity: .fraction(cell.fraction))
                if let policy { options.policy = policy }
                if !trace.hasSizes { options.sizing = .unit }
                let done = Double(rows.count)
                let outcome = TraceReplay(trace).run(options) {
                    progress("replaying \(name)", (done + $0) / cellCount)
                }
                let (requests, bytes) = (outcome.requestHitRatio, outcome.byteHitRatio)
                rows.append(.init(cell: cell, requests: requests, bytes: bytes))
                measurements += Self.measured(cell, outcome)
            }
        }
        return (HitRatioScore(rows), measurements)
    }

    /// Our rows, with some policies of the reference for the report's curves.
    private static func measured(
        _ cell: HitRatioReference.Cell,
        _ outcome: TraceReplay.Outcome
    ) -> [Measurement] {
        let capacity = Measurement.Parameter("memory_fraction", cell.fraction)
        func report(_ policy: String) -> ReplayReport {
            ReplayReport(trace: cell.trace, policy: policy, capacity: capacity)
        }
        var rows = report("ours").measurements(outcome)
        if let best = cell.best, best.requests > 0 {
            rows[0].ratio = .init(to: "libcachesim", outcome.requestHitRatio / best.requests)
        }
        for name in ["LRU", "S3FIFO", "GDSF", "LIRS", "Belady"] {
            guard let ratios = cell.policies[name] else { continue }
            rows += report(name).hitRatios(ratios.requests, ratios.bytes)
        }
        return rows
    }
}
