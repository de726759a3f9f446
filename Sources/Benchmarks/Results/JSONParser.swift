/// The reason why a text is not valid JSON.
package struct JSONError: Error, CustomStringConvertible {
    package let offset: Int
    package let reason: String
    package var description: String { "invalid JSON at byte \(offset): \(reason)" }
}

extension JSONValue {
    package init(parsing text: String) throws {
        var parser = JSONParser(bytes: Array(text.utf8))
        self = try parser.parseDocument()
    }
}

/// Parses one JSON text (RFC 8259) by recursive descent, up to a fixed depth.
private struct JSONParser {
    /// More than the depth of any text written here, and far below the stack's limit.
    static let depthMax = 64

    let bytes: [UInt8]
    var offset = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func parseDocument() throws -> JSONValue {
        let value = try parseValue(depth: 0)
        skipSpace()
        guard offset == bytes.count else { throw failure("text after the end") }
        return value
    }

    private mutating func parseValue(depth: Int) throws -> JSONValue {
        guard depth < Self.depthMax else { throw failure("more than \(Self.depthMax) levels") }
        skipSpace()
        switch peek {
        case UInt8(ascii: "{"): return try parseObject(depth: depth)
        case UInt8(ascii: "["): return try parseArray(depth: depth)
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "t"): return try parse("true", as: .bool(true))
        case UInt8(ascii: "f"): return try parse("false", as: .bool(false))
        case UInt8(ascii: "n"): return try parse("null", as: .null)
        default: return try parseNumber()
        }
    }

    private mutating func parseObject(depth: Int) throws -> JSONValue {
        try expect("{")
        var members: [JSONMember] = []
        skipSpace()
        if accept("}") { return .object([]) }
        repeat {
            skipSpace()
            let name = try parseString()
            skipSpace()
            try expect(":")
            members.append(JSONMember(name, try parseValue(depth: depth + 1)))
            skipSpace()
        } while accept(",")
        try expect("}")
        return .object(members)
    }

    private mutating func parseArray(depth: Int) throws -> JSONValue {
        try expect("[")
        var elements: [JSONValue] = []
        skipSpace()
        if accept("]") { return .array([]) }
        repeat {
            elements.append(try parseValue(depth: depth + 1))
            skipSpace()
        } while accept(",")
        try expect("]")
        return .array(elements)
    }

    private mutating func parseString() throws -> String {
        try expect("\"")
        var text: [UInt8] = []
        while let byte = peek {
            offset += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): try parseEscape(into: &text)
            case ..<0x20: throw failure("a control character in a string")
            default: text.append(byte)
            }
        }
        throw failure("a string without end")
    }

    private mutating func parseEscape(into text: inout [UInt8]) throws {
        guard let byte = peek else { throw failure("a string without end") }
        offset += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"): text += Array(String(try parseScalar()).utf8)
        default: throw failure("an unknown escape")
        }
    }

    /// Parses one `uXXXX`, or two that form a surrogate pair.
    private mutating func parseScalar() throws -> Character {
        var value = try parseUnit()
        if 0xD800..<0xDC00 ~= value, accept("\\"), accept("u") {
            let low = try parseUnit()
            guard 0xDC00..<0xE000 ~= low else { throw failure("half a surrogate pair") }
            value = 0x1_0000 + (value - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(value) else { throw failure("half a surrogate pair") }
        return Character(scalar)
    }

    private mutating func parseUnit() throws -> UInt32 {
        guard bytes.count - offset >= 4,
            bytes[offset..<offset + 4].allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
            let value = UInt32(
                String(decoding: bytes[offset..<offset + 4], as: UTF8.self),
                radix: 16
            )
        else { throw failure("four hexadecimal digits are missing") }
        offset += 4
        return value
    }

    private mutating func parseNumber() throws -> JSONValue {
        let start = offset
        while let byte = peek, "+-.0123456789eE".utf8.contains(byte) { offset += 1 }
        let text = String(decoding: bytes[start..<offset], as: UTF8.self)
        guard let first = text.utf8.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "."),
            let number = Double(text), number.isFinite
        else {
            offset = start
            throw failure("a value is missing")
        }
        return .number(number)
    }

    private mutating func parse(_ word: String, as value: JSONValue) throws -> JSONValue {
        guard bytes[offset...].starts(with: word.utf8) else { throw failure("a value is missing") }
        offset += word.utf8.count
        return value
    }

    private var peek: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || (0x09...0x0D ~= byte && byte != 0x0B && byte != 0x0C)
        {
            offset += 1
        }
    }

    private mutating func accept(_ character: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: character) else { return false }
        offset += 1
        return true
    }

    private mutating func expect(_ character: Unicode.Scalar) throws {
        guard accept(character) else { throw failure("`\(character)` is missing") }
    }

    private func failure(_ reason: String) -> JSONError {
        JSONError(offset: offset, reason: reason)
    }
}
