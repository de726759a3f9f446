/// The public declarations of a file that `swift format` has laid out: what a program may name or
/// must implement.
struct PublicFace {
    /// A type or an extension around the line that is read.
    private struct Scope {
        let indent: Int
        let kind: Substring
        let name: String
        let isPublic: Bool
    }

    /// No declaration has more lines.
    private static let linesMax = 30
    private static let indentation = 4

    private let lines: [Substring]
    private var scopes: [Scope] = []
    private(set) var declarations: [String] = []

    init(code: String) {
        lines = code.split(separator: "\n", omittingEmptySubsequences: false)
        for number in lines.indices { read(number) }
    }

    private mutating func read(_ number: Int) {
        let line = lines[number]
        let indent = line.prefix { $0 == " " }.count
        if line.dropFirst(indent).hasPrefix("}") { scopes.removeAll { $0.indent >= indent } }
        let owner = scopes.last.flatMap { scope in
            scope.isPublic && scope.indent + Self.indentation == indent ? scope.kind : nil
        }
        if owner == "enum", let match = line.firstMatch(of: /^ *(?:indirect )?case\b/) {
            addCases(rest(of: number, after: match.range.upperBound))
            return
        }
        let isRequirement = owner == "protocol"
        guard isRequirement || line.contains("public ") || line.hasSuffix("{") else { return }
        let type =
            /^ *(?:[@a-z][\w()]* )*?(struct|enum|class|actor|protocol|extension) ([A-Z][\w.]*)/
        if let match = line.firstMatch(of: type) {
            let isPublic = line.contains(/\bpublic\b/)
            if isPublic, match.1 != "extension" { add("\(match.1)", "\(match.2)") }
            if line.hasSuffix("}") { return }
            scopes.append(
                Scope(indent: indent, kind: match.1, name: "\(match.2)", isPublic: isPublic)
            )
            return
        }
        let member =
            /\bpublic (?:[a-z]+(?:\([\w()]+\))? )*?(var|let|func|init|subscript|typealias)\b ?([^\s(:]*)/
        let requirement =
            /^ *(?:@\w+ )*(?:[a-z]+(?:\([\w()]+\))? )*?(var|func|init|subscript|associatedtype)\b ?([^\s(:]*)/
        guard let match = line.firstMatch(of: isRequirement ? requirement : member) else { return }
        let isNamed = !match.2.isEmpty && match.1 != "init"
        // An operator may begin with the sign that begins generic parameters.
        let plain = match.2.first?.isLetter == true ? match.2.prefix { $0 != "<" } : match.2
        let takesArguments = ["func", "init", "subscript"].contains(match.1)
        let arguments = takesArguments ? rest(of: number, after: match.range.upperBound) : ""
        add(
            isRequirement ? "requirement \(match.1)" : "\(match.1)",
            (isNamed ? "\(plain)" : "\(match.1)") + Self.labels(in: arguments)
        )
    }

    private mutating func add(_ kind: String, _ name: String) {
        declarations.append("\(kind) \(scopes.map { $0.name + "." }.joined())\(name)")
    }

    private mutating func addCases(_ list: String) {
        for text in Self.parts(of: list, endAtLine: true) {
            guard let match = text.firstMatch(of: /^\s*`?(\w+)`?(\(?)/) else { continue }
            add("case", "\(match.1)" + (match.2.isEmpty ? "" : Self.labels(in: text)))
        }
    }

    /// The text of a line from `start`, and the lines that a declaration may go on for.
    private func rest(of number: Int, after start: Substring.Index) -> String {
        let following = lines[number...].dropFirst().prefix(Self.linesMax - 1)
        return ([lines[number][start...]] + following).joined(separator: "\n")
    }

    /// The labels of the arguments in the first brackets of `text`; empty without any.
    private static func labels(in text: String) -> String {
        guard let open = text.firstIndex(of: "(") else { return "" }
        let arguments = parts(of: String(text[text.index(after: open)...]), endAtLine: false)
        let names = arguments.filter { $0.contains(where: \.isLetter) }.map { argument in
            // The values that a case carries need not have names.
            argument.firstMatch(of: /^\s*(\w+)(?: \w+)?:/).map { "\($0.1)" } ?? "_"
        }
        return "(" + names.map { "\($0):" }.joined() + ")"
    }

    /// The parts of a list, which ends before a closing bracket or, if it must, with its line.
    private static func parts(of text: String, endAtLine: Bool) -> [String] {
        var (depth, isQuoted, parts) = (0, false, [""])
        for character in text {
            if character == "\"" { isQuoted.toggle() }
            if !isQuoted {
                if "([{".contains(character) { depth += 1 }
                if ")]}".contains(character) { depth -= 1 }
                if depth < 0 { break }
                if character == ",", depth == 0 {
                    parts.append("")
                    continue
                }
                // A list goes on after a comma.
                let isBegun = parts[parts.count - 1].contains(where: \.isLetter)
                if endAtLine, character == "\n", depth == 0, isBegun { break }
            }
            parts[parts.count - 1].append(character)
        }
        return parts
    }
}
