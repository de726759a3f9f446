/// Reads the directives of a Cache-Control field line (RFC 9111 §5.2).
///
///     cache-directive = token [ "=" ( token / quoted-string ) ]
///
/// The scanner never fails. It steps over text that begins no directive: one byte, or a quoted
/// string that closes. The rest of the member is read on, so that a restriction cannot hide behind
/// an error. A directive behind an error, or whose argument does not follow the grammar, gets the
/// argument `malformed`: its name still counts, as a restriction.
public struct DirectiveScanner {
    public enum Argument {
        case none
        case token(ByteRun)
        /// The text between the quotes, with its escapes.
        case quoted(ByteRun)
        /// The argument does not follow the grammar, or stands behind text that does not.
        case malformed
    }

    public struct Directive {
        public let name: ByteRun
        public let argument: Argument

        /// Whether the directive breaks the grammar, or stands behind text that does.
        ///
        /// Such a directive restricts, and permits nothing.
        public var isDoubtful: Bool {
            if case .malformed = argument { return true }
            return false
        }
    }

    private let text: ByteRun
    private var position = 0
    /// Whether the member contains text before `position` that breaks the grammar.
    private var isInDoubt = false
    /// Whether a quoted string opens and never closes.
    ///
    /// The text after such a quote is read as if the quote were missing, so that a restriction
    /// cannot hide behind it. Every directive in it is doubtful.
    public private(set) var hasUnclosedQuote = false

    public init(_ text: ByteRun) { self.text = text }

    public mutating func next() -> Directive? {
        while true {
            if isInDoubt { endDoubt() }
            skip { $0.isOptionalWhitespace || $0 == .comma }
            guard position < text.count else { return nil }
            let start = position
            skip { $0.isToken }
            guard position > start else {
                stepOver()
                continue
            }
            let name = text[start..<position]
            let isBehindError = isInDoubt
            let argument = argument()
            let isDoubtful = isBehindError || hasUnclosedQuote
            return Directive(name: name, argument: isDoubtful ? .malformed : argument)
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

    /// Skips whitespace; returns `true` if the member ends there.
    ///
    /// Otherwise the rest of the member is in doubt.
    private mutating func endsHere() -> Bool {
        skip { $0.isOptionalWhitespace }
        guard position < text.count, text[position] != .comma else { return true }
        isInDoubt = true
        if Mutant.skipsBehindErrors.isOn {
            position = ListScanner.endOfMember(in: text, from: position)
        }
        return false
    }

    /// Ends the doubt if the member ends here.
    private mutating func endDoubt() {
        skip { $0.isOptionalWhitespace }
        isInDoubt = position < text.count && text[position] != .comma
    }

    /// Steps over a byte that begins no directive, or over the quoted string that it opens.
    private mutating func stepOver() {
        isInDoubt = true
        let end = text[position] == .quote ? endOfQuotedString() : nil
        position = end ?? position + 1
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
