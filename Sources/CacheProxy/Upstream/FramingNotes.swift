import HTTPCaching

/// The framing of a response's body as the field lines of its head define it.
///
/// The head is refused if two readers could frame the body differently (RFC 9112 §11.1), or if it
/// names a transfer coding that is not decoded here (§6.1).
struct FramingNotes: Sendable {
    private enum Line { case coding, length, other }

    /// The last fault of a line, whatever the other lines say.
    private(set) var fault: ResponseFault?
    private(set) var isChunked = false
    private(set) var lengthLineCount = 0
    /// The length that all members of all lines share; `nil` if there is no line or they differ.
    private(set) var length: Int?
    /// Whether every line of a length consists of its digits alone, without leading zeros.
    private(set) var isLengthPlain = true
    private var lengthsDiffer = false
    private var last = Line.other

    /// Records a line that begins a field; `name` is the part before the colon.
    mutating func note(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        let token = ByteRun(name).trimmed
        last = Self.line(of: token)
        switch last {
        case .other: return
        case .coding:
            if isChunked { fault = .transferEncodingRepeated }
            if !ByteRun(value).trimmed.equals(lowercased: "chunked") {
                fault = .transferCodingUnknown
            }
            isChunked = true
        case .length: noteLengths(ByteRun(value).trimmed)
        }
        if token.count != name.count { fault = .spaceBeforeFramingColon }
    }

    /// Records a line that continues the previous field.
    mutating func noteFold() {
        if last != .other { fault = .framingFolded }
    }

    private static func line(of name: ByteRun) -> Line {
        switch name.count {
        case 14: name.equals(lowercased: "content-length") ? .length : .other
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
        for index in 0..<list.count where !Self.isOfAList(list[index]) {
            fault = .contentLengthInvalid
        }
    }

    private mutating func noteLength(_ member: ByteRun) {
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

    private static func isOfAList(_ byte: UInt8) -> Bool {
        byte.isDigit || byte == .comma || byte.isOptionalWhitespace
    }
}
