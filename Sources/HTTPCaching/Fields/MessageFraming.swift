/// The framing of a response's body as the field lines of its head define it (RFC 9112 §6.3).
///
/// Every parser of responses uses it. A head is refused if two readers could frame the body
/// differently (RFC 9112 §11.1), or if it names a transfer coding that is not decoded here (§6.1).
public struct MessageFraming: Sendable {
    /// The reason why a head is refused.
    public enum Fault: Hashable, Sendable, CaseIterable {
        case codingRepeated
        case codingUnknown
        /// HTTP/1.0 has no transfer codings, so a message with one is faulty (RFC 9112 §6.1).
        case codingInOldVersion
        /// A length is not a number, or two lengths differ.
        case lengthInvalid
        case spaceBeforeColon
        case folded
    }

    /// The framing that all lines of a head give together.
    public enum Verdict: Hashable, Sendable {
        case refused(Fault)
        /// The coding frames the body, whatever a length beside it says (RFC 9112 §6.3).
        case chunked(hasLength: Bool)
        /// `isPlain` means one line of digits alone, without leading zeros.
        case length(Int, isPlain: Bool)
        /// No line frames the body: it ends with the connection.
        case untilClose
    }

    private enum Line { case coding, length, other }

    /// The last fault of a line, whatever the other lines say.
    private var fault: Fault?
    private var isChunked = false
    private var lengthLineCount = 0
    /// The length that all members of all lines share; `nil` if there is no line or they differ.
    private var length: Int?
    /// Whether every line of a length consists of its digits alone, without leading zeros.
    private var isLengthPlain = true
    private var lengthsDiffer = false
    private var last = Line.other

    public init() {}

    /// Whether a body follows the head of a final response with this status.
    public static func hasBody(status: Int, isHead: Bool) -> Bool {
        !isHead && status != 204 && status != 304
    }

    /// Records a line that begins a field; `name` is the part before the colon.
    ///
    /// - Returns: The fault of this line.
    public mutating func note(
        name: UnsafeRawBufferPointer,
        value: UnsafeRawBufferPointer
    ) -> Fault? {
        last = .other
        guard name.count >= Self.nameBytesMin else { return nil }
        let token = ByteRun(name).trimmed
        var found: Fault?
        last = Self.line(of: token)
        switch last {
        case .other: return nil
        case .coding:
            if isChunked { found = .codingRepeated }
            if !ByteRun(value).trimmed.equals(lowercased: "chunked") { found = .codingUnknown }
            isChunked = true
        case .length:
            let list = ByteRun(value).trimmed
            noteLengths(list)
            if !Self.isOfListBytes(list) { found = .lengthInvalid }
        }
        if token.count != name.count { found = .spaceBeforeColon }
        if let found { fault = found }
        return found
    }

    /// Records a line that continues the previous field.
    ///
    /// - Returns: The fault of this line.
    public mutating func noteFold() -> Fault? {
        guard last != .other else { return nil }
        fault = .folded
        return .folded
    }

    /// The framing of a head that has ended; `isOldVersion` means HTTP/1.0.
    public func verdict(isOldVersion: Bool) -> Verdict {
        if let fault { return .refused(fault) }
        if isChunked {
            return isOldVersion
                ? .refused(.codingInOldVersion) : .chunked(hasLength: lengthLineCount > 0)
        }
        guard lengthLineCount > 0 else { return .untilClose }
        guard let length else { return .refused(.lengthInvalid) }
        return .length(length, isPlain: lengthLineCount == 1 && isLengthPlain)
    }

    /// The length of the shortest name that frames a body.
    private static let nameBytesMin = 14

    private static func line(of name: ByteRun) -> Line {
        switch name.count {
        case nameBytesMin: name.equals(lowercased: "content-length") ? .length : .other
        case 17: name.equals(lowercased: "transfer-encoding") ? .coding : .other
        default: .other
        }
    }

    /// Records a list of lengths, all of which must be equal (RFC 9110 §8.6).
    private mutating func noteLengths(_ list: ByteRun) {
        lengthLineCount += 1
        var start = 0
        while let comma = list.index(of: .comma, from: start) {
            noteLength(list[start..<comma])
            start = comma + 1
            isLengthPlain = false
        }
        noteLength(list[start..<list.count])
    }

    private mutating func noteLength(_ member: ByteRun) {
        if Mutant.takesTheLastLength.isOn { length = nil }
        var start = 0
        while start < member.count, member[start] == .space { start += 1 }
        let digits = member[start..<member.count]
        guard !lengthsDiffer, let number = DecimalNumber.parse(digits), length ?? number == number
        else {
            lengthsDiffer = true
            length = nil
            return
        }
        length = number
        if start > 0 || (digits.count > 1 && digits[0] == .zero) { isLengthPlain = false }
    }

    /// Whether every byte may be part of a list of lengths.
    private static func isOfListBytes(_ list: ByteRun) -> Bool {
        for index in 0..<list.count {
            let byte = list[index]
            guard byte.isDigit || byte == .comma || byte.isOptionalWhitespace else { return false }
        }
        return true
    }
}
