import Platform

extension ReportSection {
    /// The engine's speed divided by that of each peer measured in the same run.
    static func ratios(_ runs: [ReportPage.Run]) -> Self {
        let rows = ratioRows(runs)
        let scale = PlotScale(.logarithmic, around: rows.flatMap(\.dots).map(\.value) + [0.5, 2]) {
            "\($0.shortest) x"
        }
        let plot = DotPlot(
            title: "How many times as fast as …",
            horizontal: scale,
            horizontalTitle: "speed against the peer in the same run",
            rows: rows,
            mark: (1, "slower", "faster")
        )
        return Self(
            title: "Beside others",
            explanation: "Both sides did the same work in the same run, alternating; each dot is "
                + "the median over the rounds. To the right of the dashed line the engine is ahead. "
                + "The floor is the same reads done by a bare loop: the machine itself.",
            figures: rows.isEmpty ? [] : [plot.svg]
        )
    }

    /// A row for each piece of work, with a dot for each peer that did the same work; the rows of
    /// several runs lie side by side.
    ///
    /// Replays are left out; they have curves of their own.
    private static func ratioRows(_ runs: [ReportPage.Run]) -> [DotPlot.Row] {
        var rows: [(work: String, row: DotPlot.Row)] = []
        for run in runs {
            for one in run.result.measurements where one.workload != "replay" {
                guard let ratio = one.ratio, ratio.value > 0 else { continue }
                let setting = one.parameters.map { "\($0.name) \($0.value)" }
                let work = ([one.workload] + setting).joined(separator: ", ")
                let name = run.label(work, among: runs)
                if let index = rows.firstIndex(where: { $0.row.name == name }) {
                    rows[index].row.dots.append(dot(of: ratio, one.better))
                } else {
                    let end = rows.lastIndex { $0.work == work }.map { $0 + 1 } ?? rows.count
                    let row = DotPlot.Row(name: name, dots: [dot(of: ratio, one.better)])
                    rows.insert((work, row), at: end)
                }
            }
        }
        return rows.map(\.row)
    }

    /// The dot of a ratio, which is inverted where lower is better: right of the mark is always
    /// better.
    private static func dot(of ratio: Measurement.Ratio, _ better: Measurement.Direction)
        -> DotPlot.Dot
    {
        let gain = better == .lower ? 1 / ratio.value : ratio.value
        return DotPlot.Dot(
            name: ratio.peer,
            value: gain,
            colour: peerColour(ratio.peer),
            label: "\(gain.threeDigits) x"
        )
    }

    /// Latency from the median to the maximum, for each workload with percentiles.
    static func latency(_ runs: [ReportPage.Run]) -> Self {
        var names: [String] = []
        for one in runs.flatMap(\.result.measurements)
        where one.percentiles != nil && one.workload != "open-loop" {
            if !names.contains(one.workload) { names.append(one.workload) }
        }
        return Self(
            title: "Latency, from the median to the worst",
            explanation:
                "From p90 on, each step to the right is ten times rarer; the last point is "
                + "the slowest operation of the run. A flat curve is a promise that can be kept; "
                + "where it bends, something else wanted the processor or the lock.",
            figures: names.flatMap { latencyPlots($0, runs) }
        )
    }

    /// The curves of one workload, in as many plots as their colours need.
    private static func latencyPlots(_ name: String, _ runs: [ReportPage.Run]) -> [Markup] {
        let series = latencyCurves(name, runs).enumerated().map { number, curve in
            LinePlot.Series(name: curve.name, points: curve.points, colour: number)
        }
        return LinePlot.split(series, title: name).map { latencyPlot($0.title, $0.series) }
    }

    /// The curves of one workload; those of several runs with the same setting lie side by side.
    private static func latencyCurves(
        _ workload: String,
        _ runs: [ReportPage.Run]
    ) -> [(name: String, points: [(Double, Double)])] {
        var curves: [(setting: String, name: String, points: [(Double, Double)])] = []
        for run in runs {
            for one in run.result.measurements where one.workload == workload {
                guard let percentiles = one.percentiles else { continue }
                let parameters = one.parameters.map { "\($0.name) \($0.value)" }
                let setting =
                    parameters.isEmpty ? one.quantity : parameters.joined(separator: ", ")
                let points = zip(rareness, percentiles.named).map { ($0.x, max(1, $1.value)) }
                let end = curves.lastIndex { $0.setting == setting }.map { $0 + 1 } ?? curves.count
                curves.insert((setting, run.label(setting, among: runs), points), at: end)
            }
        }
        return curves.map { ($0.name, $0.points) }
    }

    private static func latencyPlot(_ title: String, _ series: [LinePlot.Series]) -> Markup {
        LinePlot(
            title: title,
            horizontalTitle: "percentile",
            verticalTitle: "latency",
            horizontal: PlotScale(
                .linear,
                from: 0.1,
                to: 4.2,
                ticks: rareness.map { PlotScale.Tick(value: $0.x, label: $0.label) }
            ),
            vertical: PlotScale(
                .logarithmic,
                around: series.flatMap(\.points).map(\.y),
                label: Unit.nanoseconds.readable
            ),
            series: series,
            describe: { x, y in
                let name = rareness.first { $0.x == x }?.label ?? ""
                return "\(name) \(Unit.nanoseconds.readable(y))"
            }
        ).svg
    }

    /// The horizontal position of each percentile: its number of nines, with the maximum last.
    private static let rareness: [(label: String, x: Double)] = [
        ("p50", 0.301), ("p90", 1), ("p99", 2), ("p99.9", 3), ("max", 4),
    ]

    /// Latency as the load grows to saturation.
    static func openLoop(_ runs: [ReportPage.Run]) -> Self {
        let figures = runs.compactMap { run -> Markup? in
            let steps = run.result.measurements.compactMap { one -> (Double, Percentiles)? in
                guard one.workload == "open-loop", let percentiles = one.percentiles,
                    let rate = one.parameter("rate").flatMap(Double.init)
                else { return nil }
                return (rate, percentiles)
            }.sorted { $0.0 < $1.0 }
            return steps.count < 2 ? nil : openLoopPlot(run.label("open loop", among: runs), steps)
        }
        return Self(
            title: "Throughput against latency",
            explanation: "Requests arrive on a schedule, whether or not the last one was answered; "
                + "waiting counts. Where the curves turn upwards the engine is full.",
            figures: figures
        )
    }

    private static func openLoopPlot(
        _ title: String,
        _ steps: [(rate: Double, percentiles: Percentiles)]
    ) -> Markup {
        let picks: [(String, KeyPath<Percentiles, Double>)] = [
            ("p50", \.p50), ("p99", \.p99), ("p99.9", \.p999), ("max", \.max),
        ]
        let series = picks.enumerated().map { index, pick in
            LinePlot.Series(
                name: pick.0,
                points: steps.map { ($0.rate, max(1, $0.percentiles[keyPath: pick.1])) },
                colour: index
            )
        }
        return LinePlot(
            title: title,
            horizontalTitle: "requests offered per second",
            verticalTitle: "latency",
            horizontal: PlotScale(.linear, around: steps.map(\.rate)) {
                Unit.operationsPerSecond.readable($0)
            },
            vertical: PlotScale(
                .logarithmic,
                around: series.flatMap(\.points).map(\.y),
                label: Unit.nanoseconds.readable
            ),
            series: series,
            describe: {
                "\(Unit.operationsPerSecond.readable($0)), \(Unit.nanoseconds.readable($1))"
            }
        ).svg
    }

    /// A disk hit compared with a bare read and decompression of the same bytes.
    static func disk(_ runs: [ReportPage.Run]) -> Self {
        var rows: [DotPlot.Row] = []
        for run in runs {
            for one in run.result.measurements
            where one.workload.hasPrefix("disk-hit") && one.ratio?.peer == "floor" {
                guard let ratio = one.ratio, ratio.value > 0 else { continue }
                let floor = one.value / ratio.value
                let size = one.parameter("size").map { " \($0)" } ?? ""
                rows.append(
                    DotPlot.Row(
                        name: run.label(one.workload + size, among: runs),
                        dots: [
                            .init(
                                name: "bare pread and LZ4",
                                value: floor,
                                colour: 7,
                                label: Unit.nanoseconds.readable(floor)
                            ),
                            .init(
                                name: "the engine",
                                value: one.value,
                                colour: 0,
                                label: Unit.nanoseconds.readable(one.value)
                            ),
                        ]
                    )
                )
            }
        }
        let scale = PlotScale(
            .logarithmic,
            around: rows.flatMap(\.dots).map(\.value),
            label: Unit.nanoseconds.readable
        )
        let plot = DotPlot(
            title: "A disk hit and the physical floor beneath it",
            horizontal: scale,
            horizontalTitle: "time for one hit",
            rows: rows
        )
        return Self(
            title: "Disk hits against the physical floor",
            explanation: "The grey dot is what the machine needs to read and decompress the same "
                + "bytes with no cache around them; the distance to the blue dot is what index, "
                + "checksum and key comparison cost.",
            figures: rows.isEmpty ? [] : [plot.svg]
        )
    }

    /// Returns the colour of a peer, which is the same in every figure.
    private static func peerColour(_ peer: String) -> Int {
        let order = ["floor", "caffeine", "concurrenthashmap", "urlcache", "rocksdb", "lmdb"]
        let proxies = ["nginx", "varnish", "squid", "trafficserver", "bare"]
        if let index = order.firstIndex(of: peer) { return (index + 7) % Palette.count }
        return (proxies.firstIndex(of: peer) ?? 5) + 1
    }
}
