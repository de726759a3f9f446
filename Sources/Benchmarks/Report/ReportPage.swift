/// The report: one HTML page without external resources.
package struct ReportPage {
    /// A run with its name, which is shown if there are several runs.
    package struct Run {
        package let name: String
        package let result: RunResult

        package init(name: String, result: RunResult) {
            self.name = name
            self.result = result
        }
    }

    private let runs: [Run]

    package init(_ runs: [Run]) { self.runs = runs }

    package var html: String {
        var page = Markup()
        page.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">")
        page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")
        page.element("title", [], text: "CacheEngine: how fast it is")
        page.raw("<style>\(Palette.style)</style></head><body><main>")
        page.element("h1", [], text: "CacheEngine: how fast it is")
        for run in runs {
            page.element(
                "p",
                [],
                text: (runs.count > 1 ? "\(run.name): " : "") + run.result.summary
            )
        }
        appendTiles(to: &page)
        if runs.count == 2 { page.append(DifferenceTable.markup(runs[0], runs[1])) }
        for section in sections where !section.figures.isEmpty {
            page.element("h2", [], text: section.title)
            page.element("p", [], text: section.explanation)
            page.element("div", [("class", "plots")]) { plots in
                for figure in section.figures { plots.append(figure) }
            }
        }
        page.append(FigureTable.markup(runs))
        page.raw("</main></body></html>\n")
        return page.text
    }

    private var sections: [ReportSection] {
        [
            .ratios(runs), .latency(runs), .openLoop(runs), .disk(runs), .hitRatio(runs),
        ]
    }

    /// Appends the most important figures as tiles.
    ///
    /// They are of the last run, which each tile names.
    private func appendTiles(to page: inout Markup) {
        guard let run = runs.last else { return }
        let origin = [run.name, run.result.minute].compactMap(\.self).joined(separator: ", ")
        let wanted: [(workload: String, quantity: String, title: String)] = [
            ("memory-hit", "time_per_hit", "memory hit"),
            ("http-hit", "time_per_hit", "fresh HTTP hit"),
            ("memory-hit", "allocations", "allocations a memory hit"),
            ("memory-hit-under-writes", "time_per_hit", "hit p99 while written"),
            ("disk-hit-warm", "time_per_hit", "disk hit, page-cached"),
            ("stampede", "origin_requests", "origin requests in a stampede"),
            ("restart", "time_to_open", "restart"),
            ("write-amplification", "write_amplification", "write amplification"),
        ]
        var tiles = Markup()
        for tile in wanted {
            guard
                let found = run.result.measurements.first(where: {
                    $0.workload == tile.workload && $0.quantity == tile.quantity
                })
            else { continue }
            let isTail = tile.title.contains("p99")
            let value = isTail ? found.percentiles?.p99 ?? found.value : found.value
            tiles.element("div", [("class", "tile")]) {
                $0.element("b", [], text: found.unit.readable(value))
                let setting = found.parameters.map { "\($0.name) \($0.value)" }
                $0.element(
                    "span",
                    [],
                    text: ([tile.title] + setting).joined(separator: ", ")
                )
                $0.element("span", [], text: origin)
            }
        }
        if !tiles.text.isEmpty {
            page.element("div", [("class", "tiles")]) { $0.append(tiles) }
        }
    }
}

/// A title, an explanation of the figures, and the figures.
struct ReportSection {
    let title: String
    let explanation: String
    let figures: [Markup]
}

extension ReportPage.Run {
    /// The name of a curve; it contains the run's name only if there are several runs.
    func label(_ text: String, among runs: [ReportPage.Run]) -> String {
        runs.count > 1 ? "\(name): \(text)" : text
    }
}
