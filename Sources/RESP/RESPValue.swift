/// A reply of a server that speaks RESP2.
package enum RESPValue: Hashable, Sendable {
    /// A short text such as `OK`; bytes that are not UTF-8 are replaced.
    case simple(String)
    /// An error: a code in capitals, a space, and a text.
    case error(String)
    case integer(Int64)
    case bulk([UInt8])
    case array([RESPValue])
    /// A bulk string that does not exist.
    case nilBulk
    /// An array that does not exist, such as the reply of a command that timed out on the server.
    case nilArray
}

extension RESPValue {
    /// The bytes of a bulk string.
    package var bytes: [UInt8]? {
        if case .bulk(let bytes) = self { bytes } else { nil }
    }

    /// The text of a simple or bulk string; bytes that are not UTF-8 are replaced.
    package var text: String? {
        switch self {
        case .simple(let text): text
        case .bulk(let bytes): String(decoding: bytes, as: UTF8.self)
        default: nil
        }
    }

    package var integer: Int64? {
        if case .integer(let number) = self { number } else { nil }
    }

    package var elements: [RESPValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// Whether the reply is an error with this code.
    package func isError(_ code: String) -> Bool {
        guard case .error(let text) = self else { return false }
        return text.hasPrefix(code) && text.dropFirst(code.count).first ?? " " == " "
    }
}
