import CacheEngine
import CacheEngineRedis
import Platform

/// Reads a configuration from a command line and the file it names.
///
/// An option of the command line replaces the same option of the file.
enum ConfigurationReader {
    /// The task that a command line gives.
    enum Order: Sendable {
        case run(ProxyConfiguration)
        case check(ProxyConfiguration)
        case help(String)
        case version(String)
    }

    /// The limit of a configuration file: a larger file is not one.
    private static let fileBytesMax = 1 << 20

    /// Reads the arguments after the program's name.
    ///
    /// - Throws: `ConfigurationError` with one line that names the value and what to do.
    static func read(_ arguments: [String]) throws(ConfigurationError) -> Order {
        var settings: [Setting] = []
        var given = GivenOptions()
        var file: String?
        var isCheck = false
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": return .help(usage)
            case "--version": return .version("cache-proxy \(EngineRelease.version)")
            case "--check-config": isCheck = true
            default:
                let (key, value) = try option(argument, &rest)
                let name = key?.name ?? "config"
                try given.note(name, at: "--\(name)")
                if let key { settings.append((key, value)) } else { file = value }
            }
        }
        let configuration = try Self.configuration(settings, file: file)
        return isCheck ? .check(configuration) : .run(configuration)
    }

    private typealias Setting = (key: ConfigurationKey, value: String)

    /// The option of `argument` and its value, which may be the next argument; the option is `nil`
    /// for --config.
    private static func option(
        _ argument: String,
        _ rest: inout ArraySlice<String>
    ) throws(ConfigurationError) -> (key: ConfigurationKey?, value: String) {
        guard argument.hasPrefix("--") else {
            throw ConfigurationError(
                .argumentUnexpected,
                "`\(argument)` is not an option; give options as --name value, see --help"
            )
        }
        let name = String(argument.dropFirst(2).prefix { $0 != "=" })
        let key = ConfigurationKey.all.first { $0.name == name }
        guard name == "config" || key != nil else {
            throw ConfigurationError(
                .optionUnknown,
                "--\(name): there is no such option; --help lists them"
            )
        }
        if let equals = argument.firstIndex(of: "=") {
            return (key, String(argument[argument.index(after: equals)...]))
        }
        if key?.isFlag == true {
            guard let word = rest.first, ["on", "off"].contains(word) else { return (key, "") }
            rest.removeFirst()
            return (key, word)
        }
        guard let value = rest.popFirst() else {
            throw ConfigurationError(
                .valueMissing,
                "--\(name): the value is missing; give \(key?.argument ?? "FILE")"
            )
        }
        return (key, value)
    }

    /// The configuration of the file, and of the command line's settings, which replace the file's.
    private static func configuration(
        _ settings: [Setting],
        file: String?
    ) throws(ConfigurationError) -> ProxyConfiguration {
        var configuration = ProxyConfiguration()
        var given = Set(settings.map(\.key.name))
        if let file {
            given.formUnion(try apply(file: file, overriding: given, &configuration))
        }
        for (key, value) in settings {
            do throws(ValueFault) {
                try key.set(value, &configuration)
            } catch {
                throw error.error(at: "--\(key.name)")
            }
        }
        configuration.file = file
        try validate(configuration)
        try requireEffects(of: given)
        return configuration
    }

    static var usage: String {
        var text =
            "Usage: cache-proxy --origin URL [options]\n\nA caching HTTP/1.1 reverse proxy.\n\n"
        func row(_ option: String, _ help: String) {
            let space = String(repeating: " ", count: max(1, 34 - option.utf8.count))
            text += "  \(option)\(space)\(help)\n"
        }
        for key in ConfigurationKey.all {
            let argument = key.isFlag ? "[on|off]" : key.argument
            row("--\(key.name) \(argument)", key.help)
        }
        row("--config FILE", "file with these options, one a line, without the dashes")
        row("--check-config", "check the configuration and exit")
        row("--version", "print the version and exit")
        row("--help", "print this text and exit")
        return text
    }

    // MARK: The file

    /// The line up to its comment; a `#` within a word, as in a URL or a path, begins none.
    private static func withoutComment(_ line: Substring) -> Substring {
        var isWithinWord = false
        for index in line.indices {
            if line[index] == "#", !isWithinWord { return line[..<index] }
            isWithinWord = !" \t=".contains(line[index])
        }
        return line
    }

    /// Lines of `key value` or `key = value`; `#` at a word's beginning begins a comment.
    ///
    /// - Returns: The names of the options.
    private static func apply(
        file: String,
        overriding: Set<String>,
        _ configuration: inout ProxyConfiguration
    ) throws(ConfigurationError) -> Set<String> {
        var given = GivenOptions()
        let text = try contents(file, of: "--config")
        // Swift takes CR LF for one character.
        let lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }
        for (number, line) in lines.enumerated() {
            let line = trimmed(withoutComment(line))
            if line.isEmpty { continue }
            let name = line.prefix { $0 != " " && $0 != "\t" && $0 != "=" }
            var value = trimmed(line.dropFirst(name.count))
            if value.hasPrefix("=") { value = trimmed(value.dropFirst()) }
            guard let key = ConfigurationKey.all.first(where: { $0.name == name }) else {
                throw ConfigurationError(
                    .optionUnknown,
                    "\(file):\(number + 1): there is no option `\(name)`; --help lists them"
                )
            }
            let place = "\(file):\(number + 1): \(key.name)"
            try given.note(key.name, at: place)
            // The command line replaces every line of the file for an option, origins included.
            if overriding.contains(key.name) { continue }
            do throws(ValueFault) {
                try key.set(String(value), &configuration)
            } catch {
                throw error.error(at: place)
            }
        }
        return given.names
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let isSpace = { (character: Character) in
            character == " " || character == "\t" || character == "\r"
        }
        var text = text
        while let first = text.first, isSpace(first) { text = text.dropFirst() }
        while let last = text.last, isSpace(last) { text = text.dropLast() }
        return text
    }

    /// The text of the small file that an option names.
    private static func contents(
        _ path: String,
        of option: String
    ) throws(ConfigurationError) -> String {
        guard let file = fopen(path, "re") else {
            throw unreadable(path, of: option)
        }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: fileBytesMax + 1)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else {
            throw unreadable(path, of: option)
        }
        guard count <= fileBytesMax else {
            throw ConfigurationError(
                .fileUnreadable,
                "\(option): \(path) has more than \(fileBytesMax) bytes; give a smaller file"
            )
        }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    private static func unreadable(_ path: String, of option: String) -> ConfigurationError {
        let reason = String(cString: strerror(errno))
        return ConfigurationError(
            .fileUnreadable,
            "\(option): \(path) cannot be read: \(reason); give a file that this user may read"
        )
    }

    /// The least bytes of a token: a shorter one is easily guessed.
    private static let tokenBytesMin = 8

    /// The token in the first line of a file.
    static func token(_ path: String) throws(ConfigurationError) -> String {
        let text = try contents(path, of: "--purge-token")
        let line = trimmed(text.prefix { !$0.isNewline })
        guard line.utf8.count >= tokenBytesMin else {
            throw ConfigurationError(
                .tokenInvalid,
                "--purge-token: the token in the first line of \(path) has \(line.utf8.count) bytes; "
                    + "give at least \(tokenBytesMin)"
            )
        }
        return String(line)
    }

    /// A mistyped or unmounted path must not fill the file system above it.
    private static func requireParent(of path: String) throws(ConfigurationError) {
        let parent = Self.parent(of: path)
        var status = stat()
        guard stat(parent, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw ConfigurationError(
                .directoryMissing,
                "--disk: `\(parent)` is not a directory; create or mount it, "
                    + "only the last part of `\(path)` is created"
            )
        }
    }

    private static func requireDirectory(_ path: String) throws(ConfigurationError) {
        var status = stat()
        guard lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFDIR else {
            throw ConfigurationError(
                .directoryMissing,
                "--disk: `\(path)` is not a directory; give a directory, or a new name in one"
            )
        }
    }

    private static func requireSegments(
        in path: String,
        _ size: ByteCount
    ) throws(ConfigurationError) {
        let segments = DiskGeometry.segmentsMax(
            directory: path,
            capacityBytes: size.bytes,
            openFilesMax: Machine.openFilesMax,
            processors: Machine.processorCount
        )
        guard segments == 0 else { return }
        throw ConfigurationError(
            .valueInvalid,
            "--disk-size: `\(size.bytes)` bytes are too few for a disk cache; give at least 1M"
        )
    }

    private static func parent(of path: String) -> String {
        var rest = path[...]
        while rest.count > 1, rest.last == "/" { rest.removeLast() }
        guard let slash = rest.lastIndex(of: "/") else { return "." }
        return slash == rest.startIndex ? "/" : String(rest[..<slash])
    }

    /// An option that changes nothing is a mistake: the one that it belongs to was forgotten.
    private static func requireEffects(of given: Set<String>) throws(ConfigurationError) {
        for (name, other) in ConfigurationKey.parts
        where given.contains(name) && !given.contains(other) {
            throw ConfigurationError(
                .optionsConflicting,
                "--\(name): without --\(other) it changes nothing; give both"
            )
        }
    }

    private static func validate(
        _ configuration: ProxyConfiguration
    ) throws(ConfigurationError) {
        try validateOrigins(configuration.origins)
        var isAnyPort = false
        if case .tcp(_, 0) = configuration.listen { isAnyPort = true }
        if configuration.admin == configuration.listen, !isAnyPort {
            throw ConfigurationError(
                .optionsConflicting,
                "--admin: `\(configuration.listen)` is the address of --listen too; give another"
            )
        }
        if let path = configuration.purgeTokenFile {
            _ = try token(path)
            guard configuration.admin != nil else {
                throw ConfigurationError(
                    .optionsConflicting,
                    "--purge-token: purges are requests to --admin; give its address"
                )
            }
        }
        if let path = configuration.diskDirectory {
            try requireParent(of: path)
            try requireDirectory(path)
            try requireSegments(in: path, configuration.diskSize)
        }
        try validateFleet(configuration)
        try validateListener(configuration)
    }

    /// Checks that no entries of one client's cache are shared.
    private static func validateFleet(
        _ configuration: ProxyConfiguration
    ) throws(ConfigurationError) {
        guard configuration.fleet != nil, configuration.fleetShares == .entries,
            configuration.mode == .private
        else { return }
        throw ConfigurationError(
            .optionsConflicting,
            "--fleet-share: `entries` cannot be shared with --mode private; "
                + "give purges, or --mode shared"
        )
    }

    /// Checks that there is an origin, and that no two are one server.
    private static func validateOrigins(
        _ origins: [OriginAddress]
    ) throws(ConfigurationError) {
        guard !origins.isEmpty else {
            throw ConfigurationError(
                .originMissing,
                "--origin: no origin is given; give at least one, as --origin http://127.0.0.1:9000"
            )
        }
        var forms: Set<String> = []
        for origin in origins where !forms.insert(origin.normalForm).inserted {
            throw ConfigurationError(
                .optionsConflicting,
                "--origin: `\(origin)` is given twice; give it once"
            )
        }
    }

    /// Checks that the workers and the peers fit the listener.
    private static func validateListener(
        _ configuration: ProxyConfiguration
    ) throws(ConfigurationError) {
        if case .unix = configuration.listen {
            guard configuration.workers == 1 else {
                throw ConfigurationError(
                    .optionsConflicting,
                    "--workers: `\(configuration.workers)` workers cannot share a unix socket; "
                        + "give 1"
                )
            }
            guard configuration.proxyPeers?.includesUnix != false else {
                throw ConfigurationError(
                    .optionsConflicting,
                    "--proxy-protocol-from: clients of `\(configuration.listen)` have no address; "
                        + "give unix"
                )
            }
        } else if let peers = configuration.proxyPeers, peers.networks.isEmpty {
            throw ConfigurationError(
                .optionsConflicting,
                "--proxy-protocol-from: clients of `\(configuration.listen)` have addresses; "
                    + "give their networks"
            )
        }
    }
}
