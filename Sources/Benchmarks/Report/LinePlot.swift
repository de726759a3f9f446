/// An SVG of curves over two axes, with a legend; its colours come from the page.
struct LinePlot {
    struct Series {
        let name: String
        let points: [(x: Double, y: Double)]
        /// The index of a series colour; the same thing has the same colour in every plot.
        let colour: Int
    }

    let title: String
    let horizontalTitle: String
    let verticalTitle: String
    let horizontal: PlotScale
    let vertical: PlotScale
    let series: [Series]
    /// The text that describes a point while the pointer rests on it.
    let describe: (_ x: Double, _ y: Double) -> String

    static let width = 460.0
    static let height = 280.0
    private static let left = 64.0
    private static let right = 16.0
    private static let top = 14.0
    private static let bottom = 44.0

    var svg: Markup {
        var markup = Markup()
        markup.element("figure", []) { figure in
            figure.element("figcaption", [], text: title)
            let box = "0 0 \(Self.width.fixed(0)) \(Self.height.fixed(0))"
            figure.element("svg", [("viewBox", box), ("role", "img"), ("aria-label", title)]) {
                drawAxes(into: &$0)
                for one in series { draw(one, into: &$0) }
            }
            figure.append(Self.legend(series.map { ($0.name, $0.colour) }))
        }
        return markup
    }

    /// The curves of as many plots as their colours need, each with the plot's title.
    static func split(_ series: [Series], title: String) -> [(title: String, series: [Series])] {
        let numbers = Set(series.map { $0.colour / Palette.count }).sorted()
        return numbers.enumerated().map { index, number in
            (
                numbers.count > 1 ? "\(title), \(index + 1) of \(numbers.count)" : title,
                series.filter { $0.colour / Palette.count == number }
            )
        }
    }

    /// Swatches with names; empty for fewer than two series.
    static func legend(_ entries: [(name: String, colour: Int)]) -> Markup {
        var markup = Markup()
        guard entries.count > 1 else { return markup }
        markup.element("ul", [("class", "legend")]) { list in
            for entry in entries {
                list.element("li", []) {
                    $0.element("i", [("class", "c\(entry.colour % Palette.count)")], text: "")
                    $0.element("span", [], text: entry.name)
                }
            }
        }
        return markup
    }

    private func x(_ value: Double) -> Double {
        Self.left + horizontal.position(value) * (Self.width - Self.left - Self.right)
    }

    private func y(_ value: Double) -> Double {
        Self.height - Self.bottom
            - vertical.position(value) * (Self.height - Self.top - Self.bottom)
    }

    private func drawAxes(into svg: inout Markup) {
        let bottom = Self.height - Self.bottom
        for tick in vertical.ticks {
            let height = y(tick.value)
            svg.line(from: (Self.left, height), to: (Self.width - Self.right, height), "grid")
            svg.label(tick.label, at: (Self.left - 8, height + 4), anchor: "end", "tick")
        }
        for tick in horizontal.ticks {
            let place = x(tick.value)
            svg.line(from: (place, bottom), to: (place, bottom + 4), "axis")
            svg.label(tick.label, at: (place, bottom + 17), anchor: "middle", "tick")
        }
        svg.line(from: (Self.left, bottom), to: (Self.width - Self.right, bottom), "axis")
        let middle = (Self.left + Self.width - Self.right) / 2
        svg.label(horizontalTitle, at: (middle, Self.height - 6), anchor: "middle", "title")
        let turned = "rotate(-90) "
        svg.element(
            "text",
            [
                ("class", "title"), ("text-anchor", "middle"), ("transform", turned),
                ("x", (-(Self.top + bottom) / 2).fixed(1)), ("y", "13"),
            ],
            text: verticalTitle
        )
    }

    private func draw(_ series: Series, into svg: inout Markup) {
        let colour = "c\(series.colour % Palette.count)"
        let path = series.points.enumerated().map { index, point in
            "\(index == 0 ? "M" : "L")\(x(point.x).fixed(1)) \(y(point.y).fixed(1))"
        }
        svg.element("path", [("class", "line \(colour)"), ("d", path.joined())])
        for point in series.points {
            let place = [
                ("class", "dot \(colour)"), ("cx", x(point.x).fixed(1)),
                ("cy", y(point.y).fixed(1)), ("r", "3.5"),
            ]
            svg.element("circle", place) {
                $0.element("title", [], text: "\(series.name): \(describe(point.x, point.y))")
            }
        }
    }
}

extension Markup {
    mutating func line(
        from start: (x: Double, y: Double),
        to end: (x: Double, y: Double),
        _ style: String
    ) {
        element(
            "line",
            [
                ("class", style), ("x1", start.x.fixed(1)), ("y1", start.y.fixed(1)),
                ("x2", end.x.fixed(1)), ("y2", end.y.fixed(1)),
            ]
        )
    }

    mutating func label(
        _ text: String,
        at place: (x: Double, y: Double),
        anchor: String,
        _ style: String
    ) {
        element(
            "text",
            [
                ("class", style), ("text-anchor", anchor), ("x", place.x.fixed(1)),
                ("y", place.y.fixed(1)),
            ],
            text: text
        )
    }
}
