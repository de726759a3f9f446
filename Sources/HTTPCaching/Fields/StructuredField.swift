/// A strict reader of structured dictionaries (RFC 9651 §4.2.2).
///
/// One fault makes the whole field count as absent.
///
/// Values are borrowed from the field, and nothing is allocated. Parameters and inner lists are
/// checked and skipped.
public struct StructuredDictionary {
    public enum Value {
        case boolean(Bool)
        case integer(Int64)
        /// The text between the quotes, with its escapes.
        case string(ByteRun)
        case token(ByteRun)
        /// A decimal, byte sequence, date, display string or inner list; no rule here uses these.
        case other
    }

    public struct Member {
        public let key: ByteRun
        public let value: Value
    }

    public enum Step {
        case member(Member)
        case end
        case malformed
    }

    private var parser: StructuredFieldParser
    private var hasStarted = false

    public init(_ line: ByteRun) { parser = StructuredFieldParser(line) }

    public mutating func next() -> Step {
        if hasStarted {
            parser.skipOptionalWhitespace()
            if parser.isAtEnd { return .end }
            guard parser.consume(.comma) else { return .malformed }
            parser.skipOptionalWhitespace()
            // A trailing comma is an error.
            if parser.isAtEnd { return .malformed }
        } else {
            hasStarted = true
            parser.skipSpaces()
            if parser.isAtEnd { return .end }
        }
        guard let key = parser.key() else { return .malformed }
        var value = Value.boolean(true)
        if parser.consume(.equalsSign) {
            guard let given = parser.itemOrInnerList() else { return .malformed }
            value = given
        }
        guard parser.skipParameters() else { return .malformed }
        return .member(Member(key: key, value: value))
    }
}

/// The grammar below a dictionary: keys, bare items, inner lists and parameters (RFC 9651 §4.2).
struct StructuredFieldParser {
    private let text: ByteRun
    private var position = 0

    init(_ text: ByteRun) { self.text = text }

    var isAtEnd: Bool { position >= text.count }

    private var current: UInt8? { position < text.count ? text[position] : nil }

    mutating func consume(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    mutating func skipSpaces() { skip { $0 == .space } }

    mutating func skipOptionalWhitespace() { skip { $0.isOptionalWhitespace } }

    private mutating func skip(while isSkipped: (UInt8) -> Bool) {
        while let byte = current, isSkipped(byte) { position += 1 }
    }

    mutating func key() -> ByteRun? {
        guard let first = current, first.isLowercase || first == .asterisk else { return nil }
        let start = position
        skip {
            $0.isLowercase || $0.isDigit || $0 == 0x5F || $0 == .hyphen || $0 == .dot
                || $0 == .asterisk
        }
        return text[start..<position]
    }

    mutating func itemOrInnerList() -> StructuredDictionary.Value? {
        guard consume(0x28) else { return bareItem() }
        while true {
            skipSpaces()
            if consume(0x29) { return .other }
            guard bareItem() != nil, skipParameters() else { return nil }
            guard let byte = current, byte == .space || byte == 0x29 else { return nil }
        }
    }

    mutating func skipParameters() -> Bool {
        while consume(.semicolon) {
            skipSpaces()
            guard key() != nil else { return false }
            if consume(.equalsSign), bareItem() == nil { return false }
        }
        return true
    }

    private mutating func bareItem() -> StructuredDictionary.Value? {
        guard let byte = current else { return nil }
        switch byte {
        case .quote: return string()
        case .questionMark: return boolean()
        case .colon: return byteSequence()
        case 0x40:
            position += 1
            guard case .integer? = number() else { return nil }
            return .other
        case .percent: return displayString()
        case .hyphen: return number()
        default:
            if byte.isDigit { return number() }
            return byte.isLetter || byte == .asterisk ? token() : nil
        }
    }

    private mutating func number() -> StructuredDictionary.Value? {
        let sign: Int64 = consume(.hyphen) ? -1 : 1
        let start = position
        var value: Int64 = 0
        while let byte = current, byte.isDigit {
            guard position - start < 15 else { return nil }
            value = value * 10 + Int64(byte - .zero)
            position += 1
        }
        let integerDigits = position - start
        guard integerDigits > 0 else { return nil }
        guard consume(.dot) else { return .integer(sign * value) }
        let fractionStart = position
        skip { $0.isDigit }
        let fractionDigits = position - fractionStart
        return integerDigits <= 12 && (1...3).contains(fractionDigits) ? .other : nil
    }

    private mutating func string() -> StructuredDictionary.Value? {
        position += 1
        let start = position
        while let byte = current {
            if byte == .quote {
                position += 1
                return .string(text[start..<(position - 1)])
            }
            guard byte >= 0x20, byte <= 0x7E else { return nil }
            position += 1
            guard byte == .backslash else { continue }
            guard let escaped = current, escaped == .quote || escaped == .backslash else {
                return nil
            }
            position += 1
        }
        return nil
    }

    private mutating func token() -> StructuredDictionary.Value {
        let start = position
        skip { $0.isToken || $0 == .colon || $0 == .slash }
        return .token(text[start..<position])
    }

    private mutating func boolean() -> StructuredDictionary.Value? {
        position += 1
        if consume(0x31) { return .boolean(true) }
        return consume(0x30) ? .boolean(false) : nil
    }

    private mutating func byteSequence() -> StructuredDictionary.Value? {
        position += 1
        skip { $0.isLetter || $0.isDigit || $0 == 0x2B || $0 == .slash || $0 == .equalsSign }
        return consume(.colon) ? .other : nil
    }

    private mutating func displayString() -> StructuredDictionary.Value? {
        position += 1
        guard consume(.quote) else { return nil }
        while let byte = current {
            guard byte >= 0x20, byte <= 0x7E else { return nil }
            position += 1
            if byte == .quote { return .other }
            guard byte == .percent else { continue }
            for _ in 0..<2 {
                guard let digit = current, digit.isDigit || (digit >= 0x61 && digit <= 0x66) else {
                    return nil
                }
                position += 1
            }
        }
        return nil
    }
}
