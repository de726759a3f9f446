#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Where a server listens: `127.0.0.1:8080`, `[::1]:8080`, `*:8080`, `:8080` or `unix:/path`.
public enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// A numeric address and a port; port 0 for any that is free.
    case tcp(host: String, port: UInt16)
    /// A socket in the file system.
    case unix(path: String)

    /// Reads the written form; nil when it is none.
    public init?(_ text: String) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            // sun_path has 104 bytes at least, the terminating zero included.
            guard !path.isEmpty, path.utf8.count < 104 else { return nil }
            self = .unix(path: path)
            return
        }
        guard let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...])
        else { return nil }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if host.isEmpty || host == "*" { host = "0.0.0.0" }
        if host == "localhost" { host = "127.0.0.1" }
        guard Self.isNumeric(host) else { return nil }
        self = .tcp(host: host, port: port)
    }

    /// The written form.
    public var description: String {
        switch self {
        case .tcp(let host, let port):
            host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    /// What stands for the host of a request that names none.
    var authority: String {
        if case .tcp = self { return description }
        return "localhost"
    }

    private static func isNumeric(_ host: String) -> Bool {
        var four = in_addr()
        var six = in6_addr()
        return inet_pton(AF_INET, host, &four) == 1 || inet_pton(AF_INET6, host, &six) == 1
    }
}
