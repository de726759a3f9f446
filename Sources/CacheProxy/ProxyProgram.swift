import CacheEngine

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What `cache-proxy` does from its command line to its end.
public enum ProxyProgram {
    /// Runs until SIGTERM or SIGINT; the status to exit with.
    public static func run(_ arguments: [String]) async -> Int32 {
        do {
            switch try ConfigurationReader.read(arguments) {
            case .help(let text):
                print(text, terminator: "")
                return 0
            case .version(let text):
                print(text)
                return 0
            case .check(let configuration):
                print("The configuration is sound: \(configuration.listen)")
                return 0
            case .run(let configuration): return try await serve(configuration, arguments)
            }
        } catch {
            say("\(error)")
            return 2
        }
    }

    private static func serve(
        _ configuration: ProxyConfiguration,
        _ arguments: [String]
    ) async throws -> Int32 {
        let signals = try SignalStream([SIGTERM, SIGINT, SIGHUP])
        raiseDescriptorLimit()
        let service = try await ProxyService(configuration)
        say("Listening on \(service.address)")
        if let admin = service.adminAddress { say("Administration on \(admin)") }
        for await signal in signals.stream {
            guard signal == SIGHUP else { break }
            reload(service, arguments)
        }
        say("Draining")
        await service.shutDown()
        say("Ended")
        return 0
    }

    /// As many connections as the system lets this process have, without a wrapper that raises it.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
    }

    /// A configuration that is not sound changes nothing.
    private static func reload(_ service: ProxyService, _ arguments: [String]) {
        do {
            guard case .run(let new) = try ConfigurationReader.read(arguments) else { return }
            let left = try service.reload(new)
            say("Read the configuration again")
            if !left.isEmpty { say("Needs a restart: \(left.joined(separator: ", "))") }
        } catch {
            say("Kept the old configuration: \(error)")
        }
    }

    private static func say(_ line: String) {
        var line = "cache-proxy: \(line)\n"
        line.withUTF8 { _ = write(2, $0.baseAddress, $0.count) }
    }
}
