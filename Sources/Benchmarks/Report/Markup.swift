/// Text of HTML or SVG, built in pieces; all text except `raw` is escaped.
struct Markup {
    private(set) var text = ""

    mutating func raw(_ markup: String) { text += markup }

    mutating func append(_ other: Markup) { text += other.text }

    /// Appends an empty element.
    mutating func element(_ name: String, _ attributes: [(String, String)]) {
        text += "<\(name)\(Self.encoded(attributes))/>"
    }

    /// Appends an element that contains text.
    mutating func element(_ name: String, _ attributes: [(String, String)], text content: String) {
        text += "<\(name)\(Self.encoded(attributes))>\(Self.escaped(content))</\(name)>"
    }

    /// Appends an element that contains markup.
    mutating func element(
        _ name: String,
        _ attributes: [(String, String)],
        containing build: (inout Markup) -> Void
    ) {
        text += "<\(name)\(Self.encoded(attributes))>"
        build(&self)
        text += "</\(name)>"
    }

    static func escaped(_ text: String) -> String {
        // Scalars, because a sign and a mark that joins it are one character.
        var escaped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;".unicodeScalars
            case "<": escaped += "&lt;".unicodeScalars
            case ">": escaped += "&gt;".unicodeScalars
            case "\"": escaped += "&quot;".unicodeScalars
            default: escaped.append(scalar)
            }
        }
        return String(escaped)
    }

    private static func encoded(_ attributes: [(String, String)]) -> String {
        attributes.map { " \($0.0)=\"\(escaped($0.1))\"" }.joined()
    }
}
