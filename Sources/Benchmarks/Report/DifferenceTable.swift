/// The rows of two runs that differ by more than their noise.
enum DifferenceTable {
    static func markup(_ base: ReportPage.Run, _ new: ReportPage.Run) -> Markup {
        let comparison = Comparison(base: base.result, new: new.result)
        let changed = comparison.rows.filter { $0.verdict != .unchanged }
        var markup = Markup()
        markup.element("h2", [], text: "From \(base.name) to \(new.name)")
        markup.element("p", [], text: comparison.summary)
        guard !changed.isEmpty else { return markup }
        markup.element("div", [("class", "scroll")]) { scroll in
            scroll.element("table", []) { table in
                table.element("tr", []) { row in
                    for column in Comparison.columns {
                        row.element("th", side(column.alignment), text: column.title)
                    }
                }
                for one in changed { append(one, to: &table) }
            }
        }
        return markup
    }

    private static func append(_ one: Comparison.Row, to table: inout Markup) {
        table.element("tr", []) { row in
            for (text, column) in zip(one.cells, Comparison.columns) {
                row.element("td", side(column.alignment), text: text)
            }
        }
    }

    private static func side(_ alignment: TextTable.Alignment) -> [(String, String)] {
        alignment == .left ? [("class", "l")] : []
    }
}
