/// A row for each question and a dot for each answer, on one axis, to show their distances.
///
/// The names and values of a row stand above its dots, so that the plot is narrow enough for a
/// telephone and no text is cut.
struct DotPlot {
    struct Dot {
        let name: String
        let value: Double
        let colour: Int
        let label: String
    }

    struct Row {
        let name: String
        var dots: [Dot]
    }

    let title: String
    let horizontal: PlotScale
    let horizontalTitle: String
    let rows: [Row]
    /// A value to which all rows are compared, with the meaning of either side.
    var mark: (value: Double, left: String, right: String)?

    private static let width = LinePlot.width
    private static let margin = 12.0
    private static let rowHeight = 38.0
    private static let top = 24.0

    var svg: Markup {
        let bottom = Self.top + Double(rows.count) * Self.rowHeight + 4
        let height = bottom + 42
        var markup = Markup()
        markup.element("figure", []) { figure in
            figure.element("figcaption", [], text: title)
            let box = "0 0 \(Self.width.fixed(0)) \(height.fixed(0))"
            figure.element("svg", [("viewBox", box), ("role", "img"), ("aria-label", title)]) {
                drawAxes(bottom: bottom, into: &$0)
                for (index, row) in rows.enumerated() { draw(row, at: index, into: &$0) }
            }
            figure.append(LinePlot.legend(names))
        }
        return markup
    }

    private var names: [(name: String, colour: Int)] {
        var names: [(name: String, colour: Int)] = []
        for dot in rows.flatMap(\.dots) where !names.contains(where: { $0.name == dot.name }) {
            names.append((dot.name, dot.colour))
        }
        return names
    }

    private func x(_ value: Double) -> Double {
        Self.margin + horizontal.position(value) * (Self.width - 2 * Self.margin)
    }

    private func drawAxes(bottom: Double, into svg: inout Markup) {
        for tick in horizontal.ticks {
            svg.line(from: (x(tick.value), Self.top), to: (x(tick.value), bottom), "grid")
            svg.label(tick.label, at: (x(tick.value), bottom + 15), anchor: "middle", "tick")
        }
        svg.label(horizontalTitle, at: (Self.width / 2, bottom + 34), anchor: "middle", "title")
        guard let mark else { return }
        let place = x(mark.value)
        svg.line(from: (place, Self.top - 6), to: (place, bottom), "mark")
        svg.label(mark.left, at: (place - 8, Self.top - 8), anchor: "end", "title")
        svg.label(mark.right, at: (place + 8, Self.top - 8), anchor: "start", "title")
    }

    private func draw(_ row: Row, at index: Int, into svg: inout Markup) {
        let top = Self.top + Double(index) * Self.rowHeight
        let height = top + 27
        svg.label(row.name, at: (Self.margin, top + 15), anchor: "start", "row")
        // In the order of the dots, so that each value can be found.
        let values = row.dots.sorted { $0.value < $1.value }.map(\.label)
        let end = Self.width - Self.margin
        svg.label(values.joined(separator: " · "), at: (end, top + 15), anchor: "end", "row")
        let places = row.dots.map { x($0.value) }
        let ends = places + (mark.map { [x($0.value)] } ?? [])
        if let first = ends.min(), let last = ends.max(), last > first {
            svg.line(from: (first, height), to: (last, height), "bond")
        }
        for dot in row.dots {
            let place = [
                ("class", "dot c\(dot.colour % Palette.count)"), ("cx", x(dot.value).fixed(1)),
                ("cy", height.fixed(1)), ("r", "5"),
            ]
            svg.element("circle", place) {
                $0.element("title", [], text: "\(row.name): \(dot.name) \(dot.label)")
            }
        }
    }
}
