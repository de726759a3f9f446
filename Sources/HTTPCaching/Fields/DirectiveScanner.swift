/// Reads the directives of a Cache-Control field line (RFC 9111 §5.2).
///
///     cache-directive = token [ "=" ( token / quoted-string ) ]
///
/// The scanner never fails. It skips a member that is not a directive, up to the next comma. A
/// directive whose argument does not follow the grammar gets the argument `malformed`, so that its
/// name still counts.
public struct DirectiveScanner {
    public enum Argument {
        case none
        case token(ByteRun)
        /// The text between the quotes, with its escapes.
        case quoted(ByteRun)
        case malformed
    }

    public struct Directive {
        public let name: ByteRun
        public let argument: Argument
    }

    private let text: ByteRun
    private var position = 0
    /// Whether a quoted string opens and never closes.
    ///
    /// The text after such a quote is read as if the quote were missing, so that a restriction
    /// cannot hide behind it.
    public private(set) var hasUnclosedQuote = false

    public init(_ text: ByteRun) { self.text = text }

    public mutating func next() -> Directive? {
        while true {
            skip { $0.isOptionalWhitespace || $0 == .comma }
            guard position < text.count else { return nil }
            let start = position
            skip { $0.isToken }
            guard position > start else {
                skipMember()
                continue
            }
            let name = text[start..<position]
            return Directive(name: name, argument: argument())
        }
    }

    private mutating func argument() -> Argument {
        guard position < text.count, text[position] == .equalsSign else {
            return endsHere() ? .none : .malformed
        }
        position += 1
        if position < text.count, text[position] == .quote { return quotedArgument() }
        let start = position
        skip { $0.isToken }
        let value = text[start..<position]
        return endsHere() && !value.isEmpty ? .token(value) : .malformed
    }

    private mutating func quotedArgument() -> Argument {
        let start = position + 1
        guard let end = endOfQuotedString() else {
            position = start
            return .malformed
        }
        position = end
        return endsHere() ? .quoted(text[start..<(end - 1)]) : .malformed
    }

    /// Skips the rest of the member; returns `true` if the rest is only whitespace.
    private mutating func endsHere() -> Bool {
        skip { $0.isOptionalWhitespace }
        guard position < text.count, text[position] != .comma else { return true }
        skipMember()
        return false
    }

    private mutating func skipMember() {
        while position < text.count, text[position] != .comma {
            guard text[position] == .quote else {
                position += 1
                continue
            }
            position = endOfQuotedString() ?? position + 1
        }
    }

    /// The index after the quoted string that opens here; `nil` if it never closes.
    ///
    /// Every quote behind an unclosed one is escaped in it, and closes as little: it is not looked
    /// for again, or a line of such quotes would take the square of its length.
    private mutating func endOfQuotedString() -> Int? {
        guard !hasUnclosedQuote else { return nil }
        let end = ListScanner.endOfQuotedString(in: text, from: position)
        hasUnclosedQuote = end == nil
        return end
    }

    private mutating func skip(while isSkipped: (UInt8) -> Bool) {
        while position < text.count, isSkipped(text[position]) { position += 1 }
    }
}
