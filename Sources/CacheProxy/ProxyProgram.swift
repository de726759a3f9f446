import CacheEngine
import Platform

/// The program `cache-proxy`.
package enum ProxyProgram {
    /// Runs until SIGTERM or SIGINT; returns the status to exit with.
    ///
    /// It is 2 for a mistake in the configuration, and 1 for a failure that may pass by itself.
    package static func run(_ arguments: [String]) async -> Int32 {
        do {
            switch try ConfigurationReader.read(arguments) {
            case .help(let text):
                print(text, terminator: "")
                return 0
            case .version(let text):
                print(text)
                return 0
            case .check(let configuration):
                try ProxyService.validate(configuration)
                _ = try configuration.bounded(openFilesMax: Machine.raiseOpenFilesMax())
                print(PlainText.escaped("The configuration is valid: \(configuration.listen)"))
                return 0
            case .run(let configuration): return try await serve(configuration, arguments)
            }
        } catch {
            say("\(error)")
            return isMistake(error) ? 2 : 1
        }
    }

    private static func isMistake(_ error: any Error) -> Bool {
        error is ConfigurationError || (error as? CacheError)?.code == .configurationInvalid
    }

    private static func serve(
        _ configuration: ProxyConfiguration,
        _ arguments: [String]
    ) async throws -> Int32 {
        let signals = try SignalStream(
            [SIGTERM, SIGINT, SIGHUP, SIGUSR1],
            ignoring: [SIGPIPE, SIGUSR2]
        )
        let openFilesMax = Machine.raiseOpenFilesMax()
        let bounded = try configuration.bounded(openFilesMax: openFilesMax)
        let service = try await ProxyService(bounded)
        let note = bounded.note(wanted: configuration, openFilesMax: openFilesMax)
        say("Listening on \(service.address)\(note.map { "; \($0)" } ?? "")")
        if let admin = service.adminAddress { say("Administration on \(admin)") }
        var rules = DrainSignals(sinceNanoseconds: monotonicNanoseconds())
        loop: for await signal in signals.stream {
            switch signal.number {
            case SIGHUP: reload(service, arguments, openFilesMax: openFilesMax)
            case SIGUSR1: service.reopenLog()
            default:
                rules = DrainSignals(sinceNanoseconds: signal.atNanoseconds)
                break loop
            }
        }
        say("Draining")
        let following = Task { [stream = signals.stream, rules] in
            await Self.follow(stream, rules, draining: service)
        }
        await service.shutDown()
        following.cancel()
        say("Ended")
        return 0
    }

    /// Acts on signals during a drain: a second one to end cuts the running responses.
    static func follow(
        _ signals: AsyncStream<ReceivedSignal>,
        _ rules: DrainSignals,
        draining service: ProxyService
    ) async {
        for await signal in signals {
            switch rules.effect(of: signal) {
            case .repeats: say("Still draining: the signal to end came twice")
            case .endsNow:
                say("Ending at once")
                await service.endDrain()
            case .reopensLog:
                say("Still draining: the access log is opened again")
                service.reopenLog()
            case .isIgnored: say("Still draining: the configuration is not read again")
            }
        }
    }

    /// Opens the log again and reads the configuration; an invalid one changes nothing.
    static func reload(
        _ service: ProxyService,
        _ arguments: [String],
        openFilesMax: Int
    ) {
        service.reopenLog()
        do {
            guard case .run(let new) = try ConfigurationReader.read(arguments) else { return }
            let bounded = try new.bounded(
                openFilesMax: openFilesMax,
                running: service.configuration
            )
            let left = try service.reload(bounded)
            say("Read the configuration again")
            guard !left.isEmpty else { return }
            let names = left.map { "--\($0)" }.joined(separator: ", ")
            say("Unchanged until a restart: \(names)")
        } catch {
            say("Kept the old configuration: \(error)")
        }
    }

    /// Writes a line to standard error.
    static func say(_ line: String) { errors.write("cache-proxy: \(PlainText.escaped(line))\n") }

    private static let errors = ErrorOutput(ownDescriptor(of: 2))
}
