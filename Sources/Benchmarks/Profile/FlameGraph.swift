/// Call stacks as nested boxes; the width of a box shows how often its stack was sampled.
///
/// The layout follows https://www.brendangregg.com/flamegraphs.html, with fewer colours and a
/// smaller page. The outermost call is at the bottom. Siblings are in alphabetical order, which has
/// no meaning. A click on a box widens it; a click on the bottom row restores the picture.
package struct FlameGraph {
    /// One box: a function, called by the functions in the boxes below it.
    private final class Node {
        let name: String
        var count = 0
        var children: [String: Node] = [:]

        init(name: String) { self.name = name }

        func child(_ name: String) -> Node {
            if let found = children[name] { return found }
            let node = Node(name: name)
            children[name] = node
            return node
        }

        /// The number of rows with boxes wide enough to be drawn.
        func depth(countMin: Double) -> Int {
            guard Double(count) >= countMin else { return 0 }
            return 1 + (children.values.map { $0.depth(countMin: countMin) }.max() ?? 0)
        }
    }

    private static let width = 1200.0
    private static let rowHeight = 18.0
    /// The smallest width of a visible box, in the units of the picture.
    private static let boxWidthMin = 0.4
    /// Calls above this one are left out: a picture of recursion is as tall as the recursion.
    private static let frameCountMax = 60

    private let root = Node(name: "all")
    private let title: String
    private let unit: String
    private let total: Int

    package init(_ samples: StackSamples, title: String, unit: String = "samples") {
        self.title = title
        self.unit = unit
        total = samples.total
        for (stack, count) in samples.counts {
            var node = root
            node.count += count
            for name in stack.prefix(Self.frameCountMax) {
                node = node.child(name)
                node.count += count
            }
        }
    }

    package var svg: String {
        let countMin = Self.boxWidthMin / (Self.width - 24) * Double(max(1, total))
        let height = Double(root.depth(countMin: countMin)) * Self.rowHeight + 64
        var svg = Markup()
        svg.raw("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n")
        svg.element(
            "svg",
            [
                ("xmlns", "http://www.w3.org/2000/svg"),
                ("viewBox", "0 0 \(Self.width.fixed(0)) \(height.fixed(0))"),
                ("font-family", "ui-monospace,\"DejaVu Sans Mono\",monospace"), ("font-size", "11"),
            ]
        ) {
            $0.raw("<style>\(Self.style)</style>")
            $0.element("rect", [("class", "page"), ("width", "100%"), ("height", "100%")])
            $0.element("text", [("class", "title"), ("x", "12"), ("y", "24")], text: title)
            $0.element(
                "text",
                [("class", "note"), ("x", "12"), ("y", "42")],
                text: "\(total) \(unit); width is how often, height is who calls whom"
            )
            draw(root, from: 0, bottom: height - 8, into: &$0)
            $0.raw("<script><![CDATA[\(Self.script)]]></script>")
        }
        return svg.text + "\n"
    }

    private func draw(_ node: Node, from left: Double, bottom: Double, into svg: inout Markup) {
        let scale = (Self.width - 24) / Double(max(1, total))
        let width = Double(node.count) * scale
        guard width >= Self.boxWidthMin else { return }
        let share = Double(node.count) * 100 / Double(max(1, total))
        svg.element("g", [("class", "box")]) { group in
            group.element(
                "title",
                [],
                text: "\(node.name): \(node.count) \(unit), \(share.fixed(2)) %"
            )
            let place = [
                ("x", (12 + left * scale).fixed(2)), ("y", (bottom - Self.rowHeight).fixed(1)),
                ("width", width.fixed(2)), ("height", (Self.rowHeight - 1).fixed(1)),
            ]
            group.element("rect", place + [("fill", Self.colour(node.name)), ("rx", "1.5")])
            let room = Int((width - 6) / 6.7)
            let text = [
                ("x", (15 + left * scale).fixed(2)), ("y", (bottom - 5).fixed(1)),
                ("data-name", node.name),
            ]
            group.element("text", text, text: Self.shortened(node.name, to: room))
        }
        var left = left
        for child in node.children.values.sorted(by: { $0.name < $1.name }) {
            draw(child, from: left, bottom: bottom - Self.rowHeight, into: &svg)
            left += Double(child.count)
        }
    }

    private static func shortened(_ name: String, to room: Int) -> String {
        if room < 3 { return "" }
        return name.count <= room ? name : name.prefix(room - 1) + "…"
    }

    /// Colours by origin: the engine warm, the runtime and the C library cool, the kernel grey.
    private static func colour(_ name: String) -> String {
        var hash: UInt32 = 2_166_136_261
        for byte in name.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        let shade = Int(hash >> 8 % 12)
        if name.hasPrefix("[") || name.hasSuffix("_syscall_64") || name.hasPrefix("__x64") {
            return "hsl(220 8% \(64 + shade)%)"
        }
        if name.contains(".") || name.contains(" ") { return "hsl(\(22 + shade * 2) 82% 62%)" }
        if name.hasPrefix("swift_") || name.hasPrefix("_swift") {
            return "hsl(\(258 + shade) 55% 74%)"
        }
        return "hsl(\(196 + shade) 52% 68%)"
    }

    private static let style = """
        .page{fill:#fff}.title{font:600 16px system-ui,sans-serif;fill:#17191c}
        .note{font:12px system-ui,sans-serif;fill:#5b626b}.box{cursor:pointer}
        .box text{pointer-events:none;fill:#17191c}.box:hover rect{stroke:#17191c;stroke-width:1}
        """

    private static let script = """
        const boxes=[...document.querySelectorAll('.box')].map(g=>{const r=g.querySelector('rect'),
        t=g.querySelector('text');return{g,r,t,x:+r.getAttribute('x'),w:+r.getAttribute('width'),
        y:+r.getAttribute('y')}});
        function zoom(b){const s=1176/b.w;for(const o of boxes){const inside=o.x>=b.x-.01&&
        o.x+o.w<=b.x+b.w+.01,under=o.y>b.y&&o.x<=b.x+.01&&o.x+o.w>=b.x+b.w-.01;
        o.g.style.display=inside||under?'':'none';const x=under?12:12+(o.x-b.x)*s,
        w=under?1176:o.w*s;o.r.setAttribute('x',x);o.r.setAttribute('width',w);
        o.t.setAttribute('x',x+3);const n=o.t.dataset.name,k=Math.floor((w-6)/6.7);
        o.t.textContent=k<3?'':n.length<=k?n:n.slice(0,k-1)+'…'}}
        for(const b of boxes)b.g.addEventListener('click',()=>zoom(b));
        """
}
