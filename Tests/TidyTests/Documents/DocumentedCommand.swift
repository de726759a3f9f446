/// A command that a document tells its reader to type.
struct DocumentedCommand: CustomStringConvertible {
    let document: String
    let text: String
    /// The words, without leading settings, quotes and a trailing comment.
    let words: [String]

    var description: String { "\(document): \(text)" }
    var program: String { words[0] }
    var arguments: [String] { Array(words.dropFirst()) }

    init?(document: String, text: String) {
        let words = Self.words(of: text)
        guard !words.isEmpty else { return nil }
        self.document = document
        self.text = text
        self.words = words
    }

    /// The commands of a document.
    ///
    /// Commands are the lines of blocks marked `sh`, and pieces of inline code that begin with one
    /// of `programs` and are more than its name.
    static func all(in document: SourceFile, programs: Set<String>) -> [DocumentedCommand] {
        var commands: [DocumentedCommand] = []
        var unfinished = ""
        for line in Line.all(in: document.text) {
            switch line.place {
            case .shellBlock:
                unfinished += line.text
                if unfinished.hasSuffix("\\") {
                    unfinished.removeLast()
                    continue
                }
                let command = DocumentedCommand(document: document.path, text: unfinished)
                if let command { commands.append(command) }
                unfinished = ""
            case .otherBlock: break
            case .text:
                for match in line.text.matches(of: /`([^`]+)`/) {
                    let command = DocumentedCommand(
                        document: document.path,
                        text: String(match.1)
                    )
                    guard let command, programs.contains(command.program) else { continue }
                    let isName = command.words.count == 1 && !command.program.contains("/")
                    if !isName || command.program == "make" { commands.append(command) }
                }
            }
        }
        return commands
    }

    /// Whether the word sets a variable for the command after it: `NAME=value`.
    private static func isSetting(_ word: String) -> Bool {
        guard let end = word.firstIndex(of: "=") else { return false }
        return word[..<end].allSatisfy { $0.isUppercase || $0 == "_" }
    }

    private static func words(of text: String) -> [String] {
        var words: [String] = []
        var word: String?
        var isQuoted = false
        for character in text {
            if character == "#", !isQuoted, word == nil { break }
            switch character {
            case "\"":
                isQuoted.toggle()
                word = word ?? ""
            case " " where !isQuoted:
                if let word { words.append(word) }
                word = nil
            default: word = (word ?? "") + String(character)
            }
        }
        if let word { words.append(word) }
        return Array(words.drop(while: isSetting))
    }
}

extension DocumentedCommand {
    /// A line of a document, and the kind of text around it.
    struct Line {
        enum Place {
            case text
            case shellBlock
            case otherBlock
        }

        let text: String
        let place: Place

        /// Whether the line is shown as code of an unstated kind.
        var isUnmarkedCode: Bool {
            place == .otherBlock || (place == .text && text.hasPrefix("    "))
        }

        static func all(in text: String) -> [Line] {
            var block: Place?
            var lines: [Line] = []
            for line in text.split(separator: "\n") {
                if line.hasPrefix("```") {
                    if block != nil {
                        block = nil
                    } else {
                        block = line == "```sh" ? .shellBlock : .otherBlock
                    }
                    continue
                }
                lines.append(Line(text: String(line), place: block ?? .text))
            }
            return lines
        }
    }
}
