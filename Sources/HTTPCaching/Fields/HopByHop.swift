/// Fields of one connection, neither stored nor forwarded (RFC 9110 §7.6.1, RFC 9111 §3.1).
///
/// This is the list of the two RFCs, and the only one here that obeys the names in `Connection`.
/// `StoredFields` uses it for what is stored, and `OriginExchange` for what comes from an origin.
/// Lists of their own, because they also leave out framing, `Host` and `HTTP2-Settings` or work while
/// they copy, have:
///
/// - `RequestParser.notice` (`hasConnectionFields`) and `RequestFields.isDropped`, for a client's
///   request to the proxy; `strip` follows if `Connection` names others.
/// - `RequestHeadWriter.isOwnedByConnection`, for the proxy's request to a plain origin.
/// - `PreparedRequest.connectionFields`, for a request through libcurl, and the list of the adapter
///   to AsyncHTTPClient.
/// - `ResponseHeadWriter.drops`, for the proxy's response to a client; `strip` follows if there is a
///   `Connection`.
/// - `HeaderFields.forwarded(by:)` in `NIOBridge/Gateway.swift` of the adapters, for a request to an
///   adapter's origin; it obeys the names in `Connection` too, and protects those that `strip` does.
///
/// A field that is added here belongs in those lists too.
public enum HopByHop {
    public enum Purpose: UInt8, Hashable, Sendable {
        case storing
        case forwardingRequest
        case forwardingResponse
    }

    /// Returns the fields without those of one connection and without those that Connection lists.
    public static func strip(_ fields: FieldSection, for purpose: Purpose) -> FieldSection {
        var listed: Set<String> = []
        var kept = fields
        kept.removeLines { line in
            guard belongsToConnection(line.name, purpose) else { return false }
            if line.name.equals(lowercased: "connection") { addNames(line.value, to: &listed) }
            return true
        }
        guard !listed.isEmpty else { return kept }
        kept.removeAll { listed.contains(lower($0)) }
        return kept
    }

    /// Adds the names that a Connection line lists, in lower case.
    ///
    /// Fields that describe the message, restrict its users or tell its way are left out: a peer
    /// cannot remove them.
    private static func addNames(_ line: ByteRun, to names: inout Set<String>) {
        var members = ListScanner(line)
        while let member = members.next() {
            // The usual member needs no list: its field is removed in any case. A member that is not
            // a token names no field, but may be a protected name in lower case.
            guard !member.equals(lowercased: "keep-alive"), FieldSection.isValidName(member),
                !isProtected(member) || Mutant.obeysEveryConnectionList.isOn,
                !Mutant.ignoresConnectionLists.isOn
            else { continue }
            names.insert(lower(member))
        }
    }

    private static func lower(_ name: ByteRun) -> String { name.string.lowercased() }

    static func belongsToConnection(_ name: ByteRun, _ purpose: Purpose) -> Bool {
        switch name.count {
        case 2: name.equals(lowercased: "te")
        case 7: name.equals(lowercased: "trailer") || name.equals(lowercased: "upgrade")
        case 10: name.equals(lowercased: "connection") || name.equals(lowercased: "keep-alive")
        case 16: name.equals(lowercased: "proxy-connection")
        case 17: name.equals(lowercased: "transfer-encoding")
        // RFC 9111 §3.1: fields of one proxy. The challenge of a 407 must still reach the client.
        case 18: name.equals(lowercased: "proxy-authenticate") && purpose == .storing
        case 19: name.equals(lowercased: "proxy-authorization")
        case 25: name.equals(lowercased: "proxy-authentication-info") && purpose == .storing
        default: false
        }
    }

    private static func isProtected(_ name: ByteRun) -> Bool {
        describesMessage(name) || isTargeted(name) || tellsItsWay(name)
    }

    private static func describesMessage(_ name: ByteRun) -> Bool {
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
        default: false
        }
    }

    /// Whether proxies name the client, its connection or themselves in the field.
    ///
    /// A client whose list passes through a proxy in front could otherwise remove that proxy's line:
    /// the origin would answer another request than the one that is stored, and a loop would not end
    /// (RFC 8586 §2, RFC 8470 §5.1).
    private static func tellsItsWay(_ name: ByteRun) -> Bool {
        switch name.count {
        case 3: return name.equals(lowercased: "via")
        case 8: return name.equals(lowercased: "cdn-loop")
        case 9: return name.equals(lowercased: "forwarded") || name.equals(lowercased: "x-real-ip")
        case 10: return name.equals(lowercased: "early-data")
        default:
            let prefix: StaticString = "x-forwarded-"
            let count = prefix.utf8CodeUnitCount
            return name.count > count && name[0..<count].equals(lowercased: prefix)
        }
    }

    /// Whether the name is that of a targeted field (RFC 9213 §2).
    private static func isTargeted(_ name: ByteRun) -> Bool {
        let suffix: StaticString = "-cache-control"
        let start = name.count - suffix.utf8CodeUnitCount
        return start > 0 && name[start..<name.count].equals(lowercased: suffix)
    }
}
