import Foundation
import Testing

/// `docs/public-face.txt` lists every public declaration, so that a review sees each change.
///
/// `UPDATE_PUBLIC_FACE=1 swift test --filter PublicFaceTests` writes the list anew.
@Suite struct PublicFaceTests {
    private static let targets = [
        "CacheEngine", "CacheEngineFoundation", "CacheEngineRedis", "CurlOrigin",
    ]
    private static let list = SourceFile.packageRoot.appending(path: "docs/public-face.txt")

    /// No declaration has more lines.
    private static let linesMax = 30

    @Test func everyPublicDeclarationIsInTheList() throws {
        var found: [String] = []
        for target in Self.targets {
            let files = try SourceFile.all(in: ["Sources/\(target)"])
            found += files.flatMap { Self.declarations(in: $0.code) }.map { "\(target) \($0)" }
        }
        found = Set(found).sorted()
        if ProcessInfo.processInfo.environment["UPDATE_PUBLIC_FACE"] != nil {
            try found.joined(separator: "\n").appending("\n")
                .write(to: Self.list, atomically: true, encoding: .utf8)
        }
        let listed = try String(contentsOf: Self.list, encoding: .utf8)
            .split(separator: "\n").map { String($0) }
        let (now, before) = (Set(found), Set(listed))
        #expect(now.subtracting(before).isEmpty, "not in docs/public-face.txt")
        #expect(before.subtracting(now).isEmpty, "in docs/public-face.txt alone")
        #expect(found.count > 300)
    }

    @Test func declarationsAreFound() {
        let code = """
            extension Outer {
                public struct Inner: Sendable {
                    public var size: Int
                    var hidden = 0
                    public init(
                        _ size: Int,
                        named name: String = "a, b: c"
                    ) { self.size = size }
                }
                public static func make(of size: Int) -> Inner { Inner(size, named: "") }
            }
            public let top = 1
            """
        #expect(
            Self.declarations(in: code) == [
                "struct Outer.Inner", "var Outer.Inner.size", "init Outer.Inner.init(_:named:)",
                "func Outer.make(of:)", "let top",
            ]
        )
    }

    /// The public declarations of a file that `swift format` has laid out.
    private static func declarations(in code: String) -> [String] {
        let lines = code.split(separator: "\n", omittingEmptySubsequences: false)
        var scopes: [(indent: Int, name: String)] = []
        var found: [String] = []
        for (number, line) in lines.enumerated() {
            let indent = line.prefix { $0 == " " }.count
            if line.drop(while: { $0 == " " }).hasPrefix("}") {
                scopes.removeAll { $0.indent >= indent }
            }
            let scope = scopes.map { $0.name + "." }.joined()
            let type =
                /^ *(?:[@a-z][\w()]* )*?(struct|enum|class|actor|protocol|extension) ([A-Z][\w.]*)/
            guard line.contains("public ") || line.hasSuffix("{") else { continue }
            if let match = line.firstMatch(of: type) {
                if line.contains(/\bpublic\b/), match.1 != "extension" {
                    found.append("\(match.1) \(scope)\(match.2)")
                }
                if !line.hasSuffix("}") { scopes.append((indent, String(match.2))) }
                continue
            }
            let member =
                /\bpublic (?:[a-z]+(?:\([\w()]+\))? )*?(var|let|func|init|subscript|typealias)\b ?([^\s(:]*)/
            guard let match = line.firstMatch(of: member) else { continue }
            let isNamed = !match.2.isEmpty && match.1 != "init"
            // An operator may begin with the sign that begins generic parameters.
            let plain = match.2.first?.isLetter == true ? match.2.prefix { $0 != "<" } : match.2
            let name = isNamed ? String(plain) : String(match.1)
            let takesArguments = ["func", "init", "subscript"].contains(match.1)
            let rest = lines[number...].prefix(Self.linesMax).joined(separator: "\n")
            found.append("\(match.1) \(scope)\(name)\(takesArguments ? labels(in: rest) : "")")
        }
        return found
    }

    /// The argument labels of the declaration that `text` begins with.
    private static func labels(in text: String) -> String {
        guard let open = text.firstIndex(of: "(") else { return "" }
        var (depth, isQuoted, arguments) = (0, false, [""])
        for character in text[open...] {
            if character == "\"" { isQuoted.toggle() }
            if isQuoted { continue }
            if "([{".contains(character) { depth += 1 }
            if ")]}".contains(character) { depth -= 1 }
            if depth == 0 { break }
            if character == ",", depth == 1 {
                arguments.append("")
            } else if depth > 1 || character != "(" {
                arguments[arguments.count - 1].append(character)
            }
        }
        let names = arguments.compactMap { argument in
            argument.split(whereSeparator: { $0 == " " || $0 == "\n" || $0 == ":" }).first
        }
        return "(" + names.map { "\($0):" }.joined() + ")"
    }
}
