/// The page's style, with colours for light and dark that are distinct also in colour blindness.
enum Palette {
    static let light = [
        "#2a78d6", "#d9622b", "#1a9b6c", "#7b4fc9", "#c99700", "#d4477f", "#3c8a1e", "#5a6b7b",
    ]
    static let dark = [
        "#5a9cee", "#ef8a58", "#3fc495", "#a98bf0", "#e3b93c", "#f07fab", "#7cc45a", "#9fb0c0",
    ]
    static let count = light.count

    static var style: String {
        """
        :root{color-scheme:light dark;\(variables(light))--page:#fbfbf9;--card:#fff;--ink:#17191c;
        --soft:#5b626b;--grid:#e7e8e6;--axis:#b9bdc1;--edge:#e3e4e1;--good:#1a7f4b;--bad:#b3361b}
        @media(prefers-color-scheme:dark){:root{\(variables(dark))--page:#121417;--card:#1a1d21;
        --ink:#e9ebee;--soft:#9aa3ad;--grid:#2a2e33;--axis:#4c535b;--edge:#2b2f35;--good:#53c98b;
        --bad:#f0866a}}
        *{box-sizing:border-box}
        body{margin:0;background:var(--page);color:var(--ink);
        font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
        main{max-width:1080px;margin:0 auto;padding:40px 24px 80px}
        h1{font-size:28px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
        h2{font-size:19px;margin:48px 0 4px}
        p{margin:0 0 14px;color:var(--soft);max-width:74ch}
        .tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:12px;
        margin:24px 0 0}
        .tile,figure{background:var(--card);border:1px solid var(--edge);border-radius:10px}
        .tile{padding:12px 14px}.tile b{display:block;font-size:22px;letter-spacing:-.01em}
        .tile span{display:block;color:var(--soft);font-size:13px}
        .plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(430px,1fr));gap:14px;
        align-items:start}
        figure{margin:0;padding:14px 16px 12px;min-width:0}
        figcaption{font-weight:600;font-size:14px;margin-bottom:4px}
        svg{display:block;width:100%;height:auto;overflow:visible}
        svg text{fill:var(--soft);font-size:11px;font-variant-numeric:tabular-nums}
        svg text.row{fill:var(--ink);font-size:12px}
        svg .grid{stroke:var(--grid)}svg .axis{stroke:var(--axis)}
        svg .bond{stroke:var(--axis);stroke-width:2}
        svg .mark{stroke:var(--ink);stroke-dasharray:3 3}
        svg .line{fill:none;stroke-width:2;stroke-linejoin:round}
        svg .dot{stroke:var(--card);stroke-width:1.5}
        .legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:8px 0 0;padding:0;
        font-size:12.5px;color:var(--soft)}
        .legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:6px}
        .scroll{overflow-x:auto;background:var(--card);border:1px solid var(--edge);
        border-radius:10px}
        table{border-collapse:collapse;width:100%;font-size:13px;
        font-variant-numeric:tabular-nums}
        th,td{padding:5px 8px;text-align:right;white-space:nowrap}
        th{color:var(--soft);font-weight:500}
        tr+tr td{border-top:1px solid var(--grid)}
        .l{text-align:left;white-space:normal;min-width:8em}.good{color:var(--good)}.bad{color:var(--bad)}
        @media(max-width:520px){main{padding:24px 12px}.plots{grid-template-columns:1fr}}
        \(classes)
        """
    }

    private static func variables(_ colours: [String]) -> String {
        colours.enumerated().map { "--s\($0.offset):\($0.element);" }.joined()
    }

    private static var classes: String {
        (0..<count).map { index in
            "svg .line.c\(index){stroke:var(--s\(index))}"
                + "svg .dot.c\(index){fill:var(--s\(index))}"
                + "i.c\(index){background:var(--s\(index))}"
        }.joined()
    }
}
