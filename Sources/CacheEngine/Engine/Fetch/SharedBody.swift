/// A body that every request of a flight may read.
enum SharedBody: Sendable {
    /// It arrived whole with the head.
    case present(ByteChunk)
    /// It arrives, and its readers follow it.
    case arriving(BodyChain)

    /// The announced length of the whole body.
    var expectedCount: Int? {
        switch self {
        case .present(let chunk): chunk.count
        case .arriving(let chain): chain.expectedCount
        }
    }

    /// Whether another response may be stored between its head and the end of its copy.
    var isStoredLater: Bool {
        switch self {
        case .present(let chunk): !TieredStore.isCopiedInPlace(chunk.count)
        case .arriving: true
        }
    }

    /// A stream of the whole body; `nil` if its beginning was dropped or the body was abandoned.
    func stream(for party: BodyChain.Party) -> BodyStream? {
        switch self {
        case .present(let chunk): BodyStream(chunk)
        case .arriving(let chain): chain.stream(for: party)
        }
    }

    /// Announces a request that is told of the body after its head; it joins or declines.
    func awaitLateReader() {
        if case .arriving(let chain) = self { chain.awaitReaders(more: 1) }
    }

    /// Declares that a request that was told of the body does not read it.
    func decline() {
        if case .arriving(let chain) = self { chain.decline() }
    }

    /// Whether the body was complete and had its readers before this request came to it.
    var isLetGo: Bool {
        if case .arriving(let chain) = self { return chain.isLetGo }
        return false
    }

    /// A stream of the bytes of `range`, which lies inside the announced length; `nil` if its
    /// beginning was dropped or is too far ahead, or the body was abandoned.
    func stream(_ range: Range<Int>, for party: BodyChain.Party) -> BodyStream? {
        switch self {
        case .present(let chunk): BodyStream(chunk[range])
        case .arriving(let chain): chain.stream(range, for: party)
        }
    }
}
