/// Decodes the chunked coding of a body (RFC 9112 §7.1) in pieces of any size.
///
///     size ──CRLF──▶ data ──▶ dataEnd ──CRLF──▶ size …
///       └──0 CRLF──▶ trailer ──empty line──▶ done
///
/// A pure value that keeps no bytes: data are ranges of the input. Extensions and trailers are
/// checked, counted and dropped, as a recipient may (RFC 9112 §7.1.1, §7.1.2).
struct ChunkDecoder: Sendable {
    /// The message that the body belongs to.
    enum Message: Hashable, Sendable {
        /// The body of a client is decoded strictly; more content is refused.
        case request(contentBytesMax: Int)
        /// The body of an origin may have lines that end with LF alone, spaces after a size, more
        /// zeros in front of it, and extensions of any visible characters.
        ///
        /// A line with an extension must still end with CRLF, because some decoders skip an LF
        /// inside an extension.
        case response(trailerBytesMax: Int)
    }

    enum Step: Hashable, Sendable {
        /// These bytes of the input are content; the rest follows after them.
        case data(Range<Int>)
        /// All input is used up.
        case needsMore
        /// The body ended before this offset.
        case end(Int)
        case refused(Fault)
    }

    enum Fault: Hashable, Sendable {
        case malformed
        /// The content has more bytes than its limit.
        case tooLarge
    }

    private enum State: Hashable {
        case sizeStart
        case size
        case sizePadding
        case extensions
        case quoted
        case quotedEscape
        case sizeLineFeed
        case data
        case dataReturn
        case dataLineFeed
        case trailerStart
        case trailerName
        case trailerValue
        case trailerLineFeed
        case endLineFeed
        case done
    }

    private var state = State.sizeStart
    private var remaining = 0
    private var digitCount = 0
    private var lineCount = 0
    private var trailerBytesLeft: Int
    private var contentBytesLeft: Int
    private let isTolerant: Bool

    init(_ message: Message) {
        switch message {
        case .request(let contentBytesMax):
            trailerBytesLeft = Self.requestTrailerBytesMax
            contentBytesLeft = contentBytesMax
            isTolerant = false
        case .response(let trailerBytesMax):
            trailerBytesLeft = trailerBytesMax
            contentBytesLeft = .max
            isTolerant = true
        }
    }

    var isDone: Bool { state == .done }

    /// Bytes of a client's trailer section.
    private static let requestTrailerBytesMax = 8 * 1024

    /// Bytes of the line in front of a chunk, extensions included.
    private var lineBytesMax: Int { isTolerant ? 4 * 1024 : 256 }

    /// Decodes from `offset` on; the caller repeats until the step is not `data`.
    mutating func decode(_ bytes: Span<UInt8>, from offset: Int) -> Step {
        var index = offset
        while index < bytes.count {
            if state == .data {
                let end = index + min(remaining, bytes.count - index)
                remaining -= end - index
                contentBytesLeft -= end - index
                if contentBytesLeft < 0 { return .refused(.tooLarge) }
                if remaining == 0 { state = .dataReturn }
                return .data(index..<end)
            }
            guard accept(bytes[index]) else { return .refused(.malformed) }
            index += 1
            if state == .done { return .end(index) }
        }
        return .needsMore
    }

    private mutating func accept(_ byte: UInt8) -> Bool {
        switch state {
        case .sizeStart, .size, .sizePadding, .extensions, .quoted, .quotedEscape, .sizeLineFeed:
            lineCount += 1
            return lineCount <= lineBytesMax && acceptInSizeLine(byte)
        case .dataReturn where Mutant.takesLooseChunkEnds.isOn: return move(true, to: .dataLineFeed)
        case .dataReturn where byte == 0x0D: return move(true, to: .dataLineFeed)
        case .dataReturn: return isTolerant && endChunk(byte)
        case .dataLineFeed: return endChunk(byte)
        case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed, .endLineFeed:
            trailerBytesLeft -= 1
            return trailerBytesLeft >= 0 && acceptInTrailer(byte)
        case .data, .done: return false
        }
    }

    private mutating func endChunk(_ byte: UInt8) -> Bool {
        lineCount = 0
        digitCount = 0
        return move(byte == 0x0A, to: .sizeStart)
    }

    private mutating func acceptInSizeLine(_ byte: UInt8) -> Bool {
        switch state {
        case .sizeStart, .size:
            if let digit = Self.hexDigit(byte) { return acceptDigit(digit) }
            return state == .size && acceptBehindSize(byte)
        case .sizePadding: return acceptBehindSize(byte)
        case .extensions:
            if byte == 0x0D { return move(true, to: .sizeLineFeed) }
            if isTolerant { return ByteClass.isFieldContent(byte) }
            if byte == 0x22 { state = .quoted }
            return ByteClass.isToken(byte) || byte == 0x22 || byte == 0x3B || byte == 0x3D
                || ByteClass.isWhitespace(byte)
        case .quoted:
            if byte == 0x22 { state = .extensions }
            if byte == 0x5C { state = .quotedEscape }
            return ByteClass.isFieldContent(byte)
        case .quotedEscape: return move(ByteClass.isFieldContent(byte), to: .quoted)
        case .sizeLineFeed: return endSizeLine(byte)
        default: return false
        }
    }

    private mutating func acceptDigit(_ digit: Int) -> Bool {
        if !isTolerant || remaining > 0 || digit > 0 { digitCount += 1 }
        // 15 hexadecimal digits are below 2^60.
        guard digitCount <= 15 else { return false }
        remaining = remaining << 4 | digit
        return move(true, to: .size)
    }

    private mutating func acceptBehindSize(_ byte: UInt8) -> Bool {
        if byte == 0x0D { return move(true, to: .sizeLineFeed) }
        if byte == 0x3B { return move(true, to: .extensions) }
        guard isTolerant else { return false }
        return ByteClass.isWhitespace(byte) ? move(true, to: .sizePadding) : endSizeLine(byte)
    }

    private mutating func endSizeLine(_ byte: UInt8) -> Bool {
        move(byte == 0x0A, to: remaining == 0 ? .trailerStart : .data)
    }

    private mutating func acceptInTrailer(_ byte: UInt8) -> Bool {
        switch state {
        case .trailerStart:
            if byte == 0x0D { return move(true, to: .endLineFeed) }
            if byte == 0x0A, isTolerant { return move(true, to: .done) }
            return move(ByteClass.isToken(byte), to: .trailerName)
        case .trailerName:
            if byte == 0x3A { return move(true, to: .trailerValue) }
            return ByteClass.isToken(byte)
        case .trailerValue:
            if byte == 0x0D { return move(true, to: .trailerLineFeed) }
            if byte == 0x0A, isTolerant { return move(true, to: .trailerStart) }
            return ByteClass.isFieldContent(byte)
        case .trailerLineFeed: return move(byte == 0x0A, to: .trailerStart)
        case .endLineFeed: return move(byte == 0x0A, to: .done)
        default: return false
        }
    }

    private mutating func move(_ isRight: Bool, to next: State) -> Bool {
        if isRight { state = next }
        return isRight
    }

    private static func hexDigit(_ byte: UInt8) -> Int? {
        switch byte {
        case 0x30...0x39: Int(byte - 0x30)
        case 0x41...0x46: Int(byte - 0x41 + 10)
        case 0x61...0x66: Int(byte - 0x61 + 10)
        default: nil
        }
    }
}
