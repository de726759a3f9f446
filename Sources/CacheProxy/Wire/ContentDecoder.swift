/// The decoder of a request's content, for either framing.
struct ContentDecoder: Sendable {
    enum Step: Hashable, Sendable {
        case data(Range<Int>)
        case needsMore
        /// The content ended before this offset.
        case end(Int)
        case refused(RequestFault)
    }

    private enum Form {
        case length(remaining: Int)
        case chunked(ChunkDecoder)
    }

    private var form: Form
    private var totalBytes = 0

    /// `nil` if there is no content.
    init?(_ framing: RequestHead.Framing) {
        switch framing {
        case .none, .length(0): return nil
        case .length(let count): form = .length(remaining: count)
        case .chunked: form = .chunked(ChunkDecoder())
        }
    }

    /// Whether the end is reached without another byte.
    var isAtEnd: Bool {
        if case .length(remaining: 0) = form { true } else { false }
    }

    /// Decodes from `offset` on; the caller repeats until the step is not `data`.
    mutating func decode(
        _ bytes: Span<UInt8>,
        from offset: Int,
        _ limits: WireLimits
    ) -> Step {
        switch form {
        case .length(let remaining):
            if remaining == 0 { return .end(offset) }
            let count = min(remaining, bytes.count - offset)
            if count == 0 { return .needsMore }
            form = .length(remaining: remaining - count)
            return .data(offset..<offset + count)
        case .chunked(var decoder):
            let step = decoder.decode(bytes, from: offset, limits)
            form = .chunked(decoder)
            switch step {
            case .data(let range):
                totalBytes += range.count
                return totalBytes > limits.contentBytesMax
                    ? .refused(.contentTooLarge) : .data(range)
            case .needsMore: return .needsMore
            case .end(let offset): return .end(offset)
            case .refused(let fault): return .refused(fault)
            }
        }
    }
}
