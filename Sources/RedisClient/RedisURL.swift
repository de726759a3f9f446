/// The servers, the user and the namespace, from one line of a configuration.
///
///     redis://[user[:password]@]host[:port][,host[:port]…][/namespace]
///     redis-sentinel://host[:port],…[/namespace]#master
///
/// Several hosts are the seeds of a cluster; `redis-cluster://` says the same of one host. A
/// password alone is written `:password@`. User and password are percent-decoded.
package struct RedisURL: Hashable, Sendable {
    package enum Arrangement: Hashable, Sendable {
        /// One server has every key.
        case single
        /// A cluster; the hosts are asked for its servers.
        case cluster
        /// The hosts are sentinels, which are asked for the address of this master.
        case sentinel(master: String)
    }

    package struct Credentials: Hashable, Sendable {
        /// Empty for the default user.
        package let user: String
        package let password: String
    }

    package static let hostsMax = 64
    package static let namespaceBytesMax = 64

    package let arrangement: Arrangement
    /// At least one.
    package let hosts: [NodeAddress]
    package let credentials: Credentials?
    /// Empty if there is no namespace.
    package let namespace: String

    /// Reads a URL; the error names the faulty part and never shows a password.
    package init(_ text: String) throws(RedisError) {
        var reader = RedisURLReader(text)
        try reader.readScheme()
        try reader.readMaster()
        try reader.readNamespace()
        credentials = try reader.readCredentials()
        hosts = try reader.readHosts()
        namespace = reader.namespace
        arrangement =
            if let master = reader.master {
                .sentinel(master: master)
            } else if hosts.count > 1 || reader.scheme == .cluster {
                .cluster
            } else {
                .single
            }
    }
}

/// Takes the parts off a URL, from both ends.
private struct RedisURLReader {
    enum Scheme: String {
        case plain = "redis"
        case cluster = "redis-cluster"
        case sentinel = "redis-sentinel"
    }

    private let text: String
    private var rest: Substring
    private(set) var scheme = Scheme.plain
    private(set) var master: String?
    private(set) var namespace = ""

    init(_ text: String) {
        self.text = text
        rest = text[...]
    }

    /// The URL as it may be shown: without any part that may be a password.
    private var shown: String {
        if Mutant.showsThePassword.isOn { return text }
        let behind = text.firstRange(of: "://")?.upperBound ?? text.startIndex
        if let at = text.lastIndex(of: "@"), at >= behind {
            return RedisError.plain("\(text[..<behind])…\(text[at...])")
        }
        // Without a host, a password stands in the place of the port.
        var isHidden = false
        let places = text[behind...].split(separator: ":", omittingEmptySubsequences: false)
        let parts = places.enumerated().map { index, part in
            guard index > 0, let end = part.firstIndex(where: { !$0.isASCII || !$0.isNumber }),
                !",/#]".contains(part[end])
            else { return String(part) }
            isHidden = true
            return "…"
        }
        return RedisError.plain(isHidden ? text[..<behind] + parts.joined(separator: ":") : text)
    }

    private func invalid(_ fault: String) -> RedisError {
        RedisError(.urlInvalid, detail: "The Redis URL `\(shown)` \(fault)")
    }

    mutating func readScheme() throws(RedisError) {
        guard let separator = rest.firstRange(of: "://") else {
            throw invalid("has no scheme; give redis://host:port")
        }
        let name = rest[..<separator.lowerBound].lowercased()
        rest = rest[separator.upperBound...]
        if name == "rediss" {
            throw invalid("asks for TLS, which is not supported yet; give redis://")
        }
        guard let scheme = Scheme(rawValue: name) else {
            throw invalid(
                "has an unknown scheme; give redis://, redis-cluster:// or redis-sentinel://"
            )
        }
        self.scheme = scheme
    }

    mutating func readMaster() throws(RedisError) {
        let parts = rest.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        guard scheme == .sentinel else {
            if parts.count > 1 { throw invalid("has a `#`; write %23 in a password") }
            return
        }
        guard parts.count == 2, isName(parts[1]) else {
            throw invalid("has no name of a master; add it as #name")
        }
        rest = parts[0]
        master = String(parts[1])
    }

    mutating func readNamespace() throws(RedisError) {
        guard let slash = rest.firstIndex(of: "/") else { return }
        let name = rest[rest.index(after: slash)...]
        guard !name.contains("@") else {
            throw invalid("has a `/` before the `@`; write %2F in a password")
        }
        guard name.isEmpty || isName(name) else {
            throw invalid(
                "has an invalid namespace; give up to \(RedisURL.namespaceBytesMax) "
                    + "letters, digits, dots, hyphens and underscores"
            )
        }
        rest = rest[..<slash]
        namespace = String(name)
    }

    /// Braces would change the slots of the keys, and colons their parts.
    private func isName(_ name: Substring) -> Bool {
        (1...RedisURL.namespaceBytesMax).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                default: false
                }
            }
    }

    mutating func readCredentials() throws(RedisError) -> RedisURL.Credentials? {
        guard let at = rest.lastIndex(of: "@") else { return nil }
        let pair = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        rest = rest[rest.index(after: at)...]
        guard let user = decoded(pair[0]), let password = decoded(pair.count > 1 ? pair[1] : "")
        else { throw invalid("has an invalid percent-encoding before the `@`; write % as %25") }
        guard !password.isEmpty else {
            throw invalid("has a user without a password; give user:password@ or :password@")
        }
        return RedisURL.Credentials(user: user, password: password)
    }

    private func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var left = text.utf8[...]
        while let byte = left.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = left.popFirst().flatMap(hexDigit),
                let low = left.popFirst().flatMap(hexDigit)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private func hexDigit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init)
    }

    mutating func readHosts() throws(RedisError) -> [NodeAddress] {
        var hosts: [NodeAddress] = []
        for part in rest.split(separator: ",", omittingEmptySubsequences: false) {
            hosts.append(try host(part))
        }
        guard hosts.count <= RedisURL.hostsMax else {
            throw invalid("has \(hosts.count) hosts; give at most \(RedisURL.hostsMax)")
        }
        return hosts
    }

    private func host(_ part: Substring) throws(RedisError) -> NodeAddress {
        var name = part
        var digits: Substring?
        if part.first == "[" {
            guard let bracket = part.firstIndex(of: "]") else {
                throw invalid("has a `[` without a `]`; give [address]:port")
            }
            name = part[part.index(after: part.startIndex)..<bracket]
            let behind = part[part.index(after: bracket)...]
            guard behind.isEmpty || behind.first == ":" else {
                throw invalid("has text behind a `]`; give [address]:port")
            }
            digits = behind.isEmpty ? nil : behind.dropFirst()
        } else if let colon = part.lastIndex(of: ":") {
            name = part[..<colon]
            digits = part[part.index(after: colon)...]
        }
        guard !name.isEmpty else { throw invalid("has no host; give redis://host:port") }
        guard part.first == "[" || name.utf8.allSatisfy(isHostByte) else {
            throw invalid("has an invalid host; give a name, an IPv4 address or [an IPv6 address]")
        }
        guard let digits else {
            let port = scheme == .sentinel ? 26_379 : NodeAddress.defaultPort
            return NodeAddress(host: String(name), port: port)
        }
        guard let port = UInt16(digits), port > 0 else {
            throw invalid("has an invalid port; give 1 to 65535")
        }
        return NodeAddress(host: String(name), port: port)
    }

    private func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
        default: false
        }
    }
}
