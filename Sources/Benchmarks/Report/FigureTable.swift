/// A table of all figures of all runs.
enum FigureTable {
    static func markup(_ runs: [ReportPage.Run]) -> Markup {
        var markup = Markup()
        markup.element("h2", [], text: "Every figure")
        markup.element(
            "p",
            [],
            text: "Medians over the rounds; the noise is half the distance between the fastest and "
                + "the slowest round."
        )
        for run in runs {
            if runs.count > 1 { markup.element("h3", [], text: run.name) }
            markup.element("div", [("class", "scroll")]) { scroll in
                scroll.element("table", []) { table in
                    head(&table)
                    for measurement in run.result.measurements { row(measurement, &table) }
                }
            }
        }
        return markup
    }

    private static func head(_ table: inout Markup) {
        table.element("tr", []) { row in
            for (index, title) in titles.enumerated() {
                row.element("th", index < 2 ? [("class", "l")] : [], text: title)
            }
        }
    }

    private static let titles = [
        "workload", "what", "value", "noise", "p50", "p90", "p99", "p99.9", "max", "against",
        "ratio",
    ]

    private static func row(_ one: Measurement, _ table: inout Markup) {
        let percentiles = one.percentiles?.named.map { Unit.nanoseconds.readable($0.value) }
        table.element("tr", []) { row in
            row.element("td", [("class", "l")], text: one.workload)
            row.element("td", [("class", "l")], text: one.metric)
            row.element("td", [], text: one.unit.readable(one.value))
            row.element("td", [], text: one.rounds.noiseText)
            for text in percentiles ?? ["", "", "", "", ""] { row.element("td", [], text: text) }
            row.element("td", [], text: one.ratio?.peer ?? "")
            row.element("td", ratioClass(one), text: one.ratio.map { $0.value.fixed(2) } ?? "")
        }
    }

    private static func ratioClass(_ one: Measurement) -> [(String, String)] {
        guard let ratio = one.ratio, ratio.peer != "floor" else { return [] }
        let isAhead = one.better == .lower ? ratio.value <= 1 : ratio.value >= 1
        return [("class", isAhead ? "good" : "bad")]
    }
}
