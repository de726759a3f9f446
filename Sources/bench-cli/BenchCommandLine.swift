import Benchmarks
import CacheEngine
import Platform

/// The program: finds the command, runs it and reports its result.
@main
enum BenchCommandLine {
    static var commands: [any Command.Type] {
        [
            ListCommand.self, RunCommand.self, ReplayCommand.self, CompareCommand.self,
            ReportCommand.self, VersusCommand.self, HitRatioCommand.self, ProfileCommand.self,
            FlameCommand.self, FleetCommand.self,
        ]
    }

    static func main() async {
        // If the reader closes the pipe, the program must not end by a signal.
        signal(SIGPIPE, SIG_IGN)
        Interruption.watch()
        let code = await run(Array(CommandLine.arguments.dropFirst()))
        exit(code.rawValue)
    }

    static func run(_ words: [String]) async -> ExitCode {
        do {
            return try await perform(words)
        } catch let error as UsageError {
            Terminal.complain(PlainText.escaped("bench-cli: \(error)"))
            return .usage
        } catch {
            Terminal.complain(PlainText.escaped("bench-cli: \(error)"))
            return .failure
        }
    }

    private static func perform(_ words: [String]) async throws -> ExitCode {
        guard let name = words.first else {
            Terminal.complain(overview)
            return .usage
        }
        if ["--help", "-h", "help"].contains(name) {
            Terminal.say(overview)
            return .success
        }
        if name == "--version" {
            let build = BuildDescription.current.summary
            Terminal.say("bench-cli \(EngineRelease.version), built with \(build)\n")
            return .success
        }
        guard let command = commands.first(where: { $0.name == name }) else {
            throw UsageError("`\(name)` is not a command; bench-cli --help lists them")
        }
        let arguments = try Arguments(Array(words.dropFirst()), flags: command.flags)
        if arguments.wantsHelp {
            Terminal.say(command.help)
            return .success
        }
        return try await command.run(arguments)
    }

    static var overview: String {
        var text = "Measures CacheEngine: how fast it is, and where the time goes.\n\n"
        let width = commands.map { $0.name.count }.max() ?? 0
        for command in commands {
            let padding = String(repeating: " ", count: width - command.name.count)
            text += "  bench-cli \(command.name)\(padding)  \(command.summary)\n"
        }
        return text + "\n`bench-cli COMMAND --help` tells what a command takes.\n"
    }
}
