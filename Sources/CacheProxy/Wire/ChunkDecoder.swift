/// Takes the chunked coding off a body (RFC 9112 §7.1), strictly, in pieces of any size.
///
///     size ──CRLF──▶ data ──▶ dataEnd ──CRLF──▶ size …
///       └──0 CRLF──▶ trailer ──empty line──▶ done
///
/// A pure value that keeps no bytes: data come out as ranges of what went in. Extensions and
/// trailers are checked, counted and dropped, as a recipient may (RFC 9112 §7.1.1, §7.1.2).
package struct ChunkDecoder: Sendable {
    package enum Step: Hashable, Sendable {
        /// These bytes of the input are content; go on behind them.
        case data(Range<Int>)
        /// All input is used up.
        case needsMore
        /// The body ended before this offset.
        case end(Int)
        case refused(RequestFault)
    }

    private enum State: Hashable {
        case sizeStart
        case size
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
    private var trailerCount = 0

    package init() {}

    package var isDone: Bool { state == .done }

    /// Goes on at `offset`; the caller repeats until it hears something other than `data`.
    package mutating func decode(
        _ bytes: UnsafeRawBufferPointer,
        from offset: Int,
        _ limits: WireLimits
    ) -> Step {
        var index = offset
        while index < bytes.count {
            if state == .data {
                let end = index + min(remaining, bytes.count - index)
                remaining -= end - index
                if remaining == 0 { state = .dataReturn }
                return .data(index..<end)
            }
            guard accept(bytes[index], limits) else { return .refused(.malformedChunk) }
            index += 1
            if state == .done { return .end(index) }
        }
        return .needsMore
    }

    private mutating func accept(_ byte: UInt8, _ limits: WireLimits) -> Bool {
        switch state {
        case .sizeStart, .size, .extensions, .quoted, .quotedEscape, .sizeLineFeed:
            lineCount += 1
            return lineCount <= limits.chunkLineBytesMax && acceptInSizeLine(byte)
        case .dataReturn: return move(byte == 0x0D, to: .dataLineFeed)
        case .dataLineFeed:
            lineCount = 0
            digitCount = 0
            return move(byte == 0x0A, to: .sizeStart)
        case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed, .endLineFeed:
            trailerCount += 1
            return trailerCount <= limits.trailerBytesMax && acceptInTrailer(byte)
        case .data, .done: return false
        }
    }

    private mutating func acceptInSizeLine(_ byte: UInt8) -> Bool {
        switch state {
        case .sizeStart, .size:
            if let digit = Self.hexDigit(byte) {
                digitCount += 1
                // 15 hexadecimal digits are below 2^60.
                guard digitCount <= 15 else { return false }
                remaining = remaining << 4 | digit
                state = .size
                return true
            }
            guard state == .size else { return false }
            if byte == 0x0D { return move(true, to: .sizeLineFeed) }
            return move(byte == 0x3B, to: .extensions)
        case .extensions:
            if byte == 0x0D { return move(true, to: .sizeLineFeed) }
            if byte == 0x22 { state = .quoted }
            return ByteClass.isToken(byte) || byte == 0x22 || byte == 0x3B || byte == 0x3D
                || ByteClass.isWhitespace(byte)
        case .quoted:
            if byte == 0x22 { state = .extensions }
            if byte == 0x5C { state = .quotedEscape }
            return ByteClass.isFieldContent(byte)
        case .quotedEscape: return move(ByteClass.isFieldContent(byte), to: .quoted)
        case .sizeLineFeed: return move(byte == 0x0A, to: remaining == 0 ? .trailerStart : .data)
        default: return false
        }
    }

    private mutating func acceptInTrailer(_ byte: UInt8) -> Bool {
        switch state {
        case .trailerStart:
            if byte == 0x0D { return move(true, to: .endLineFeed) }
            return move(ByteClass.isToken(byte), to: .trailerName)
        case .trailerName:
            if byte == 0x3A { return move(true, to: .trailerValue) }
            return ByteClass.isToken(byte)
        case .trailerValue:
            if byte == 0x0D { return move(true, to: .trailerLineFeed) }
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
