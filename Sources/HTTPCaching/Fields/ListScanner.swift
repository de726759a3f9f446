/// Splits a field value into the members of a comma-separated list (RFC 9110 §5.6.1).
///
/// Commas inside a quoted string do not separate members. `next` skips empty members. An
/// unterminated quoted string extends to the end of the line.
public struct ListScanner {
    private let text: ByteRun
    private var position = 0

    public init(_ text: ByteRun) { self.text = text }

    public mutating func next() -> ByteRun? {
        while let member = nextOrEmpty() {
            if !member.isEmpty { return member }
        }
        return nil
    }

    /// The next member, which may be empty; an empty text has one.
    mutating func nextOrEmpty() -> ByteRun? {
        guard position <= text.count else { return nil }
        let start = position
        position = Self.endOfMember(in: text, from: start)
        let member = text[start..<position].trimmed
        position += 1
        return member
    }

    /// The index of the comma that ends the member, or the end of the text.
    static func endOfMember(in text: ByteRun, from start: Int) -> Int {
        var index = start
        while index < text.count {
            switch text[index] {
            case .comma: return index
            case .quote: index = endOfQuotedString(in: text, from: index) ?? text.count
            default: index += 1
            }
        }
        return text.count
    }

    /// The index after the quoted string that opens at `start`; `nil` if the string never closes.
    static func endOfQuotedString(in text: ByteRun, from start: Int) -> Int? {
        var index = start + 1
        while index < text.count {
            switch text[index] {
            case .quote: return index + 1
            case .backslash: index += 2
            default: index += 1
            }
        }
        return nil
    }
}
