/// The chunks of an asynchronous sequence as a body.
///
/// The iterator is made when the first chunk is wanted, and released with the body.
actor SequenceSource<Chunks: AsyncSequence & Sendable>: BodySource
where Chunks.Element == ByteChunk {
    private enum State {
        case unread(Chunks)
        case reading(Chunks.AsyncIterator)
        case ended
    }

    private var state: State

    init(_ chunks: Chunks) { state = .unread(chunks) }

    func next() async throws -> ByteChunk? {
        var iterator: Chunks.AsyncIterator
        switch state {
        case .unread(let chunks): iterator = chunks.makeAsyncIterator()
        case .reading(let current): iterator = current
        case .ended: return nil
        }
        // A sequence that threw is not asked again.
        state = .ended
        guard let chunk = try await iterator.next(isolation: self) else { return nil }
        state = .reading(iterator)
        return chunk
    }

    /// Nothing to do: the body releases this source, and with it the iterator.
    nonisolated func cancel() {}
}
