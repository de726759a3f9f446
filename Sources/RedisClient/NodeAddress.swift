/// The place of one server: a name or a numeric address, and a port.
package struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
    package static let defaultPort: UInt16 = 6379

    package let host: String
    package let port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Reads `host:port`, the form of redirections; an empty host stands for `fallback`.
    package init?(redirection text: Substring, askedAt fallback: NodeAddress) {
        // A cluster may add `@` and the port of its bus.
        let place = text.prefix { $0 != "@" }
        guard let colon = place.lastIndex(of: ":"),
            let port = UInt16(place[place.index(after: colon)...]), port > 0
        else { return nil }
        let host = place[..<colon]
        self.init(host: host.isEmpty ? fallback.host : String(host), port: port)
    }

    /// The written form, with brackets around an IPv6 address.
    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
