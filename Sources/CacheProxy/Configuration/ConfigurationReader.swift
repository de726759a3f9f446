#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Makes a configuration out of a command line and the file it names.
///
/// What the command line says goes before what the file says.
public enum ConfigurationReader {
    /// What a command line asks for.
    public enum Order: Sendable {
        case run(ProxyConfiguration)
        case check(ProxyConfiguration)
        case help(String)
        case version(String)
    }

    /// A configuration file larger than this is some other file.
    private static let fileBytesMax = 1 << 20

    /// Reads the arguments behind the program's name.
    ///
    /// - Throws: `ConfigurationError` with one line that says what is wrong.
    public static func read(_ arguments: [String]) throws(ConfigurationError) -> Order {
        var settings: [(key: ConfigurationKey, value: String)] = []
        var file: String?
        var isCheck = false
        var index = 0
        while index < arguments.count {
            let argument = arguments[index]
            index += 1
            switch argument {
            case "--help", "-h": return .help(usage)
            case "--version": return .version("cache-proxy \(version)")
            case "--check-config":
                isCheck = true
                continue
            default: break
            }
            guard argument.hasPrefix("--") else {
                throw ConfigurationError("Unexpected argument \(argument); see --help")
            }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1)
            let name = parts.first.map(String.init) ?? ""
            guard name == "config" || ConfigurationKey.all.contains(where: { $0.name == name })
            else { throw ConfigurationError("Unknown option --\(name); see --help") }
            let value: String
            if parts.count == 2 {
                value = String(parts[1])
            } else {
                guard index < arguments.count else {
                    throw ConfigurationError("Option --\(name) needs a value")
                }
                value = arguments[index]
                index += 1
            }
            if name == "config" {
                file = value
            } else if let key = ConfigurationKey.all.first(where: { $0.name == name }) {
                settings.append((key, value))
            }
        }
        var configuration = ProxyConfiguration()
        if let file { try apply(file: file, overriding: settings.map(\.key.name), &configuration) }
        for (key, value) in settings {
            guard key.set(value, &configuration) else {
                throw ConfigurationError("--\(key.name): \(value) is no \(key.argument)")
            }
        }
        configuration.file = file
        try validate(configuration)
        return isCheck ? .check(configuration) : .run(configuration)
    }

    /// The version of this program.
    public static let version = "0.1.0"

    static var usage: String {
        var text =
            "Usage: cache-proxy --origin URL [options]\n\nA caching HTTP/1.1 reverse proxy.\n\n"
        func row(_ option: String, _ help: String) {
            let space = String(repeating: " ", count: max(1, 34 - option.utf8.count))
            text += "  \(option)\(space)\(help)\n"
        }
        for key in ConfigurationKey.all { row("--\(key.name) \(key.argument)", key.help) }
        row("--config FILE", "the same options, one a line, without the dashes")
        row("--check-config", "say whether the configuration is sound, and end")
        row("--version", "print the version")
        row("--help", "print this")
        return text
    }

    // MARK: The file

    /// Lines of `key value` or `key = value`; `#` begins a comment.
    private static func apply(
        file: String,
        overriding: [String],
        _ configuration: inout ProxyConfiguration
    ) throws(ConfigurationError) {
        let text = try contents(file)
        // A line end of CR and LF is one character.
        let lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }
        for (number, line) in lines.enumerated() {
            let line = trimmed(line.prefix { $0 != "#" })
            if line.isEmpty { continue }
            let name = line.prefix { $0 != " " && $0 != "\t" && $0 != "=" }
            var value = trimmed(line.dropFirst(name.count))
            if value.hasPrefix("=") { value = trimmed(value.dropFirst()) }
            guard let key = ConfigurationKey.all.first(where: { $0.name == name }) else {
                throw ConfigurationError("\(file):\(number + 1): unknown option \(name)")
            }
            // What the command line says goes first, also for what may be given several times.
            if overriding.contains(key.name) { continue }
            guard key.set(String(value), &configuration) else {
                throw ConfigurationError(
                    "\(file):\(number + 1): \(key.name): \(value) is no \(key.argument)"
                )
            }
        }
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

    /// The text of a small file.
    static func contents(_ path: String) throws(ConfigurationError) -> String {
        guard let file = fopen(path, "re") else {
            throw ConfigurationError("Cannot read \(path): \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: fileBytesMax + 1)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else {
            throw ConfigurationError("Cannot read \(path): \(String(cString: strerror(errno)))")
        }
        guard count <= fileBytesMax else { throw ConfigurationError("\(path) is too large") }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// The token in the first line of a file.
    static func token(_ path: String) throws(ConfigurationError) -> String {
        let text = try contents(path)
        let line = trimmed(text.prefix { !$0.isNewline })
        guard line.utf8.count >= 8 else {
            throw ConfigurationError("\(path): a token has 8 characters at least")
        }
        return String(line)
    }

    private static func validate(
        _ configuration: ProxyConfiguration
    ) throws(ConfigurationError) {
        guard !configuration.origins.isEmpty else {
            throw ConfigurationError("No origin is given; see --help")
        }
        var isAnyPort = false
        if case .tcp(_, 0) = configuration.listen { isAnyPort = true }
        if configuration.admin == configuration.listen, !isAnyPort {
            throw ConfigurationError("admin and listen are the same address")
        }
        if let path = configuration.purgeTokenFile { _ = try token(path) }
        if case .unix = configuration.listen {
            guard configuration.workers == 1 else {
                throw ConfigurationError("A unix socket is served by one worker")
            }
        }
    }
}
