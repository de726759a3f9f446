/// Fields that belong to one connection and go no further (RFC 9110 §7.6.1, RFC 9111 §3.1).
package enum HopByHop {
    package enum Purpose: UInt8, Hashable, Sendable {
        case storing
        case forwardingRequest
        case forwardingResponse
    }

    /// The fields without those that belong to one connection, and without those that Connection
    /// lists.
    package static func strip(_ fields: FieldSection, for purpose: Purpose) -> FieldSection {
        var kept = fields
        let listed = listedNames(in: fields)
        kept.removeAll { name in
            belongsToConnection(name, purpose) || (!listed.isEmpty && listed.contains(lower(name)))
        }
        return kept
    }

    /// The names that the Connection lines give, in lower case, but for those that say what a
    /// message is or to whom it may be shown: a peer cannot have them removed.
    package static func listedNames(in fields: FieldSection) -> Set<String> {
        var names: Set<String> = []
        fields.forEachValue(of: "connection") { line in
            var members = ListScanner(line)
            while let member = members.next() {
                guard !isProtected(member) else { continue }
                names.insert(lower(member))
            }
        }
        return names
    }

    private static func lower(_ name: ByteRun) -> String { name.string.lowercased() }

    private static func belongsToConnection(_ name: ByteRun, _ purpose: Purpose) -> Bool {
        switch name.count {
        case 2: name.equals(lowercased: "te")
        case 7: name.equals(lowercased: "trailer") || name.equals(lowercased: "upgrade")
        case 10: name.equals(lowercased: "connection") || name.equals(lowercased: "keep-alive")
        case 16: name.equals(lowercased: "proxy-connection")
        case 17: name.equals(lowercased: "transfer-encoding")
        // RFC 9111 §3.1: about one proxy. The challenge of a 407 still has to reach the client.
        case 18: name.equals(lowercased: "proxy-authenticate") && purpose == .storing
        case 19: name.equals(lowercased: "proxy-authorization")
        case 25: name.equals(lowercased: "proxy-authentication-info") && purpose == .storing
        default: false
        }
    }

    private static func isProtected(_ name: ByteRun) -> Bool {
        switch name.count {
        case 3: name.equals(lowercased: "age")
        case 4:
            name.equals(lowercased: "date") || name.equals(lowercased: "etag")
                || name.equals(lowercased: "host") || name.equals(lowercased: "vary")
        case 5: name.equals(lowercased: "range")
        case 6: name.equals(lowercased: "cookie") || name.equals(lowercased: "pragma")
        case 7: name.equals(lowercased: "expires")
        case 12: name.equals(lowercased: "content-type")
        case 13:
            name.equals(lowercased: "cache-control") || name.equals(lowercased: "authorization")
                || name.equals(lowercased: "content-range")
                || name.equals(lowercased: "last-modified")
        case 14: name.equals(lowercased: "content-length")
        case 16: name.equals(lowercased: "content-encoding")
        default: isTargeted(name)
        }
    }

    /// A targeted field, by its name (RFC 9213 §2).
    private static func isTargeted(_ name: ByteRun) -> Bool {
        let suffix: StaticString = "-cache-control"
        let start = name.count - suffix.utf8CodeUnitCount
        return start > 0 && name[start..<name.count].equals(lowercased: suffix)
    }
}
