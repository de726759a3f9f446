import Foundation

/// The commands that take minutes, in the shortened form that `.ci/run` executes.
struct LongRuns {
    private let commands: [[Substring]]

    init() throws {
        let place = SourceFile.packageRoot.appending(path: ".ci/run")
        let text = try String(contentsOf: place, encoding: .utf8)
        commands = text.matches(of: /(?m)^run (.+)$/).map { $0.1.split(separator: " ") }
    }

    /// Whether a command runs the program, with `word` as its first argument if one is given.
    func contain(_ program: String, _ word: String?) -> Bool {
        commands.contains { command in
            guard command[0] == program else { return false }
            return word == nil || command.dropFirst().first.map(String.init) == word
        }
    }
}
