/// Rows of text in aligned columns.
package struct TextTable {
    /// The side of a column at which its text is aligned.
    package enum Alignment: Sendable {
        case left
        case right
    }

    private let columns: [(title: String, alignment: Alignment)]
    private var rows: [[String]] = []

    package init(_ columns: [(title: String, alignment: Alignment)]) { self.columns = columns }

    package mutating func append(_ row: [String]) {
        precondition(row.count == columns.count)
        rows.append(row)
    }

    package var text: String {
        let titles = columns.map(\.title)
        let widths = columns.indices.map { column in
            ([titles] + rows).map { $0[column].count }.max() ?? 0
        }
        var lines = [
            line(titles, widths),
            widths.map { String(repeating: "─", count: $0) }
                .joined(separator: "  "),
        ]
        lines += rows.map { line($0, widths) }
        return lines.joined(separator: "\n") + "\n"
    }

    private func line(_ row: [String], _ widths: [Int]) -> String {
        let cells = columns.indices.map { column in
            let padding = String(repeating: " ", count: widths[column] - row[column].count)
            return columns[column].alignment == .left
                ? row[column] + padding : padding + row[column]
        }
        var line = cells.joined(separator: "  ")
        while line.hasSuffix(" ") { line.removeLast() }
        return line
    }
}
