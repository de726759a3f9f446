/// Finds the content and the end of a body, for every framing (RFC 9112 §6.3).
///
/// A pure value that keeps no bytes: content is given as ranges of the input.
struct BodyDecoder: Sendable {
    typealias Step = ChunkDecoder.Step

    private enum Form {
        case length(remaining: Int)
        case chunked(ChunkDecoder)
        case untilClose
    }

    private var form: Form

    init(_ framing: BodyFraming, of message: ChunkDecoder.Message) {
        form =
            switch framing {
            case .none: .length(remaining: 0)
            case .length(let count): .length(remaining: count)
            case .chunked: .chunked(ChunkDecoder(message))
            case .untilClose: .untilClose
            }
    }

    /// Whether the end is reached without another byte.
    var isAtEnd: Bool {
        switch form {
        case .length(let remaining): remaining == 0
        case .chunked(let decoder): decoder.isDone
        case .untilClose: false
        }
    }

    /// The bytes of an announced length that have not come; `nil` for every other framing.
    var lengthRest: Int? {
        guard case .length(let remaining) = form else { return nil }
        return remaining
    }

    /// Decodes from `offset` on; the caller repeats until the step is not `data`.
    mutating func decode(_ bytes: Span<UInt8>, from offset: Int) -> Step {
        if isAtEnd { return .end(offset) }
        switch form {
        case .length(let remaining):
            let count = min(remaining, bytes.count - offset)
            if count == 0 { return .needsMore }
            form = .length(remaining: remaining - count)
            return .data(offset..<offset + count)
        case .chunked(var decoder):
            let step = decoder.decode(bytes, from: offset)
            form = .chunked(decoder)
            return step
        case .untilClose:
            return offset < bytes.count ? .data(offset..<bytes.count) : .needsMore
        }
    }

    /// Ends the body with the connection; `false` if the body is truncated.
    mutating func connectionEnded() -> Bool {
        if case .untilClose = form { form = .length(remaining: 0) }
        return isAtEnd
    }
}
