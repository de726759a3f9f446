/// The reason why bytes are not a reply that is accepted.
package enum RESPFault: Error, Hashable, Sendable {
    /// The first byte of a value is not a type of RESP2: the server is probably no Redis.
    case unknownType(UInt8)
    /// A line has a CR without LF, or an LF without CR.
    case malformedLineEnd
    /// The text after this type is not a number.
    case malformedNumber(type: UInt8)
    /// A length below -1.
    case negativeLength(Int64)
    /// CRLF does not follow the bytes of a bulk string.
    case bulkEndMissing
    case lineTooLong(bytesMax: Int)
    case bulkTooLarge(bytes: Int64, bytesMax: Int)
    case arrayTooLong(count: Int64, countMax: Int)
    case nestedTooDeep(depthMax: Int)
    case replyTooLarge(bytes: Int, bytesMax: Int)
}

extension RESPFault: CustomStringConvertible {
    /// One line for people, with the value and the limit.
    package var description: String {
        switch self {
        case .unknownType(let byte):
            "a value begins with \(Self.name(byte)); the server does not speak RESP2"
        case .malformedLineEnd: "a line does not end with CRLF"
        case .malformedNumber(let type): "the text behind \(Self.name(type)) is not a number"
        case .negativeLength(let length): "a length is \(length)"
        case .bulkEndMissing: "CRLF is missing behind a bulk string"
        case .lineTooLong(let limit): "a line has more than \(limit) bytes"
        case .bulkTooLarge(let count, let limit):
            "a bulk string has \(count) bytes; the limit is \(limit)"
        case .arrayTooLong(let count, let limit):
            "an array has \(count) elements; the limit is \(limit)"
        case .nestedTooDeep(let limit): "arrays are nested more than \(limit) deep"
        case .replyTooLarge(let count, let limit):
            "a reply has at least \(count) bytes; the limit is \(limit)"
        }
    }

    /// The character, or the number of a byte that is not visible.
    private static func name(_ byte: UInt8) -> String {
        (0x21...0x7E).contains(byte) ? "'\(Character(Unicode.Scalar(byte)))'" : "byte \(byte)"
    }
}
