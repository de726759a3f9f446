/// What is still to come of a request's content, whichever way it is delimited.
package struct ContentDecoder: Sendable {
    package enum Step: Hashable, Sendable {
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

    /// Nil where there is no content.
    package init?(_ framing: RequestHead.Framing) {
        switch framing {
        case .none, .length(0): return nil
        case .length(let count): form = .length(remaining: count)
        case .chunked: form = .chunked(ChunkDecoder())
        }
    }

    /// Whether nothing more has to come for the end to be there.
    package var isAtEnd: Bool {
        if case .length(remaining: 0) = form { true } else { false }
    }

    /// Goes on at `offset`; the caller repeats until it hears something other than `data`.
    package mutating func decode(
        _ bytes: UnsafeRawBufferPointer,
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
