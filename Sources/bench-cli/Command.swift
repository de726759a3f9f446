import Benchmarks

/// A command of the program.
protocol Command {
    static var name: String { get }
    /// The arguments as shown after the name in the usage line.
    static var synopsis: String { get }
    /// A description of the command in one line.
    static var summary: String { get }
    static var flags: [Arguments.Flag] { get }
    /// Runs the command and returns the exit status of the program.
    static func run(_ arguments: Arguments) async throws -> ExitCode
}

/// The exit status of the program.
enum ExitCode: Int32 {
    case success = 0
    /// The work failed, a regression was found or a threshold was exceeded.
    case failure = 1
    /// The command line is invalid, or a file that it names.
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

    /// Throws if the command line contains positional words.
    static func requireNoWords(_ arguments: Arguments) throws {
        if let word = arguments.positional.first {
            throw UsageError("bench-cli \(name) takes only flags; leave out `\(word)`")
        }
    }
}
