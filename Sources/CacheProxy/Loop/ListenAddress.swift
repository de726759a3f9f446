import Platform

/// The address of a listener: `127.0.0.1:8080`, `[::1]:8080`, `*:8080`, `:8080` or `unix:/path`.
enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// A numeric address and a port; port 0 stands for any free port.
    case tcp(host: String, port: UInt16)
    /// A socket in the file system.
    case unix(path: String)

    /// Bytes of a path in `sun_path`, which has at least 104 with the terminating zero.
    private static let pathBytesMax = 103

    /// Reads the written form; `nil` if the text is not an address.
    init?(_ text: String) {
        guard let address = try? Self(parsing: text) else { return nil }
        self = address
    }

    /// Reads the written form.
    init(parsing text: String) throws(ValueFault) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard !path.isEmpty, path.utf8.count <= Self.pathBytesMax else {
                throw ValueFault(
                    "the path in `\(text)` has \(path.utf8.count) bytes",
                    give: "1 to \(Self.pathBytesMax) bytes behind unix:"
                )
            }
            self = .unix(path: path)
            return
        }
        guard let colon = text.lastIndex(of: ":") else {
            throw ValueFault("`\(text)` has no port", give: "ADDR:PORT, :PORT or unix:PATH")
        }
        let digits = text[text.index(after: colon)...]
        guard let port = UInt16(digits) else {
            throw ValueFault(
                "`\(digits)` is not a port",
                give: "1 to 65535, or 0 for any that is free"
            )
        }
        let given = text[..<colon]
        guard let host = Self.numericAddress(of: given) else {
            throw ValueFault(
                "`\(given)` is not a numeric address",
                give: "one as 127.0.0.1 or [::1], or * for all"
            )
        }
        self = .tcp(host: host, port: port)
    }

    /// The written form.
    var description: String {
        switch self {
        case .tcp(let host, let port):
            host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    /// The authority of a request that names no host.
    var authority: String {
        if case .tcp = self { return description }
        return "localhost"
    }

    /// The address that a host stands for; in brackets only an IPv6 address does.
    private static func numericAddress(of host: Substring) -> String? {
        switch host {
        case "", "*": return "0.0.0.0"
        case "localhost": return "127.0.0.1"
        default: break
        }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let address = String(isBracketed ? host.dropFirst().dropLast() : host)
        var (four, six) = (in_addr(), in6_addr())
        let isFour = !isBracketed && inet_pton(AF_INET, address, &four) == 1
        return isFour || inet_pton(AF_INET6, address, &six) == 1 ? address : nil
    }
}
