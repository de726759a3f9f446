import Benchmarks

/// One of the tool's commands.
protocol Command {
    static var name: String { get }
    /// What stands behind the name in the synopsis.
    static var synopsis: String { get }
    /// What it does, in one line.
    static var summary: String { get }
    static var flags: [Arguments.Flag] { get }
    /// Does it; the program exits with what it returns.
    static func run(_ arguments: Arguments) async throws -> ExitCode
}

/// What the program tells whoever started it.
enum ExitCode: Int32 {
    case success = 0
    /// A regression was found, or the work went wrong.
    case failure = 1
    /// The command line or a file it names is wrong.
    case usage = 2
}

extension Command {
    static var help: String {
        var text = "\(summary)\n\nusage: bench-cli \(name) \(synopsis)\n"
        guard !flags.isEmpty else { return text }
        text += "\n"
        let heads = flags.map { "\($0.name) \($0.placeholder ?? "")" }
        let width = heads.map(\.count).max() ?? 0
        for (flag, head) in zip(flags, heads) {
            let padding = String(repeating: " ", count: width - head.count)
            text += "  \(head)\(padding)  \(flag.help)\n"
        }
        return text
    }

    /// Refuses words nobody asked for.
    static func requireNoWords(_ arguments: Arguments) throws {
        if let word = arguments.positional.first {
            throw UsageError("\(word): `bench-cli \(name)` takes no names")
        }
    }
}
