import Foundation

/// A text in the sources that a user can see as an error; `…` stands for a value.
struct ErrorText: Hashable {
    let path: String
    let text: String

    /// `nil` for a text without words, as `…: …`, and for a usage line.
    private init?(_ file: SourceFile, _ text: String) {
        // A script's texts begin with its name.
        let own = "\(file.path): "
        let rest = text.hasPrefix(own) ? text.dropFirst(own.count) : text[...]
        let plain = rest.trimmingCharacters(in: .whitespacesAndNewlines)
        guard plain.contains(/[A-Za-z]{2}/), !plain.hasPrefix("usage:") else { return nil }
        path = file.path
        self.text = plain
    }

    /// The literals in the calls that build an error, and those assigned to `fault` or `detail`.
    ///
    /// The calls of Swift, C++ and Python look alike. Literals joined by `+` are one text.
    static func inCalls(of file: SourceFile) -> [ErrorText] {
        let code = file.code
        let isPython = code.hasPrefix("#!/usr/bin/env python3")
        let isC = file.path.hasSuffix(".c")
        return code.matches(of: builders).flatMap { call in
            var scanner = LiteralScanner(rest: code[call.range.upperBound...])
            return scanner.literals()
        }
        .compactMap { text -> ErrorText? in
            let plain = isC ? text.replacing(/%[-+ 0-9.*]*(?:ll|l|z)?[a-z]/, with: "…") : text
            return ErrorText(file, isPython ? text.replacing(/\{[^}]*\}/, with: "…") : plain)
        }
    }

    /// The beginnings of those calls; an answer of the administration has a status from 400 on.
    private static var builders: Regex<Substring> {
        #/
            \b(?:CacheError|RedisError|UsageError|WorkloadFailure|ValueFault|ConfigurationError|misbehaved
            |ofEventLoop|invalid|failure|fail|die|require|faults\.note|notes\.append)\(
            |\btext\(\s*4\d\d,
            |\b(?:fault|detail)\ =\s+(?=")|\bcase\ \w+\ =\ (?="[A-Z]\w*\ )|fprintf\(stderr,
        /#
        .wordBoundaryKind(.simple)
    }

    /// The lines of a shell script that are written to standard error or given to `fail`.
    ///
    /// A line without a colon reports progress.
    static func inShell(_ file: SourceFile) -> [ErrorText] {
        file.code.split(separator: "\n").flatMap { line -> [ErrorText] in
            line.matches(of: /\b(echo|fail) "((?:[^"\\]|\\.)*)"( >&2)?/).compactMap { match in
                guard match.1 == "fail" || (match.3 != nil && match.2.contains(": ")) else {
                    return nil
                }
                let text = match.2.replacing(/\$\{[^}]*\}|\$\w+|\$[*@]/, with: "…")
                return ErrorText(file, String(text))
            }
        }
    }
}

/// Reads the string literals of a call's arguments.
private struct LiteralScanner {
    var rest: Substring

    /// The literals up to the parenthesis that closes the call, or up to the end of the line if the
    /// text begins with a literal.
    mutating func literals() -> [String] {
        var texts: [String] = []
        var depth = 1
        var isAfterLiteral = false
        var isJoined = false
        while depth > 0, let character = rest.first {
            if character == "\"" {
                let text = literal()
                if isJoined, let last = texts.popLast() {
                    texts.append(last + text)
                } else {
                    texts.append(text)
                }
                (isAfterLiteral, isJoined) = (true, false)
                continue
            }
            rest.removeFirst()
            if character.isWhitespace { continue }
            isJoined = isAfterLiteral && character == "+"
            isAfterLiteral = false
            if "([{".contains(character) { depth += 1 }
            if ")]}".contains(character) { depth -= 1 }
        }
        return texts
    }

    /// Reads one literal of a single line; `…` replaces each interpolation.
    private mutating func literal() -> String {
        var text = ""
        rest.removeFirst()
        while let character = rest.popFirst(), character != "\"" {
            guard character == "\\" else {
                text.append(character)
                continue
            }
            switch rest.popFirst() {
            case "(":
                skipInterpolation()
                text += "…"
            case "n": text += "\n"
            case let other?: text.append(other)
            case nil: break
            }
        }
        return text
    }

    private mutating func skipInterpolation() {
        var depth = 1
        while depth > 0, let character = rest.first {
            if character == "\"" {
                _ = literal()
                continue
            }
            rest.removeFirst()
            if character == "(" { depth += 1 }
            if character == ")" { depth -= 1 }
        }
    }
}
