import CacheEngine
import HTTPCaching

/// The fields that tell an origin about a client: `X-Forwarded-For`, `-Proto`, `-Host`, and
/// `Forwarded` (RFC 7239).
struct ForwardedFields: Hashable, Sendable {
    /// The numeric address; empty for a socket in the file system.
    let client: String
    let host: String
    let scheme: String
    /// Whether a PROXY header told the scheme: then it stands in place of the client's claim.
    var isSchemeKnown = false

    /// The fields with this client appended to the lists; its scheme and host are added if they are
    /// missing.
    func added(to fields: HeaderFields) -> HeaderFields {
        var section = fields.section
        if !client.isEmpty { Self.append(client, to: "X-Forwarded-For", of: &section) }
        if isSchemeKnown || fields["X-Forwarded-Proto"] == nil {
            section.set("X-Forwarded-Proto", scheme)
        }
        if fields["X-Forwarded-Host"] == nil { section.set("X-Forwarded-Host", host) }
        Self.append(element, to: "Forwarded", of: &section)
        return HeaderFields(section)
    }

    /// The fields with this client in place of the client's own claims.
    func replacing(_ fields: HeaderFields) -> HeaderFields {
        var section = fields.section
        section.removeAll { name in
            name.equals(lowercased: "forwarded") || Self.isNamedForwarded(name)
        }
        return added(to: HeaderFields(section))
    }

    /// `for=192.0.2.1;host="a:81";proto=http` (RFC 7239 §4).
    private var element: String {
        let node =
            client.isEmpty ? "unknown" : client.contains(":") ? "\"[\(client)]\"" : client
        // An authority has no quotes and no backslashes.
        let isToken = host.utf8.allSatisfy(ByteClass.isToken) && !host.isEmpty
        return "for=\(node);host=\(isToken ? host : "\"\(host)\"");proto=\(scheme)"
    }

    /// Writes one line for the whole list: some origins read only the first or the last line.
    private static func append(_ member: String, to name: String, of section: inout FieldSection) {
        var members: [String] = []
        for (known, value) in HeaderFields(section).pairs
        where known.lowercased() == name.lowercased() && !value.isEmpty && isClosed(value) {
            members.append(value)
        }
        section.set(name, (members + [member]).joined(separator: ", "))
    }

    /// Whether every quoted string ends: an open one would take in the appended member.
    private static func isClosed(_ text: String) -> Bool {
        var isQuoted = false
        var isEscaped = false
        for byte in text.utf8 {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            }
        }
        return !isQuoted && !isEscaped
    }

    /// Whether the name begins with `X-Forwarded-`, or looks so to an origin that names variables.
    ///
    /// CGI, WSGI and Rack write `_` for the hyphen, and some for every other sign.
    private static func isNamedForwarded(_ name: ByteRun) -> Bool {
        let prefix: StaticString = "x-forwarded-"
        let count = prefix.utf8CodeUnitCount
        guard name.count > count else { return false }
        let wanted = UnsafeBufferPointer(start: prefix.utf8Start, count: count)
        return zip(name.buffer, wanted).allSatisfy { folded($0) == $1 }
    }

    /// The letter in lower case, the digit, or a hyphen in place of any sign.
    private static func folded(_ byte: UInt8) -> UInt8 {
        let isAlphanumeric = ByteClass.isDigit(byte) || (0x61...0x7A).contains(byte | 0x20)
        return isAlphanumeric ? byte | 0x20 : 0x2D
    }
}

extension Worker {
    /// Adds the fields about the client that the configuration asks for.
    ///
    /// The cache gets the same fields, so that variants are chosen by the fields that the origin
    /// saw.
    func forward(
        _ fields: HeaderFields,
        of connection: Connection,
        _ head: RequestHead,
        _ url: RequestURL,
        _ bytes: UnsafeRawBufferPointer
    ) -> HeaderFields {
        let sent = head.host.map { String(decoding: bytes[$0], as: UTF8.self) }
        let forwarded = ForwardedFields(
            client: connection.clientAddress,
            host: url.hostOverride ?? sent ?? "",
            scheme: (connection.scheme ?? claimedScheme(url)).rawValue,
            isSchemeKnown: connection.scheme != nil
        )
        switch configuration.forwarded {
        case .off: return fields
        case .add: return forwarded.added(to: fields)
        case .replace: return forwarded.replacing(fields)
        }
    }

    /// The listener speaks plain HTTP, so another scheme is the client's claim.
    private func claimedScheme(_ url: RequestURL) -> RequestScheme {
        configuration.forwarded == .add && url.text.hasPrefix("https:") ? .https : .http
    }
}
