import Synchronization

/// The position of one reader in the body of a flight.
final class BodyChainReader: BodySource {
    private let chain: BodyChain
    private let id: BodyChain.ReaderID
    private let limit: Int
    private let offset: Atomic<Int>

    init(_ chain: BodyChain, id: BodyChain.ReaderID, range: Range<Int>) {
        self.chain = chain
        self.id = id
        limit = range.upperBound
        offset = Atomic(range.lowerBound)
    }

    func next() async throws -> ByteChunk? {
        do {
            let chunk = try await nextChunk()
            if chunk == nil { chain.leave(id) }
            return chunk
        } catch {
            // A reader that does not return must not hold up the others.
            chain.leave(id)
            throw error
        }
    }

    private func nextChunk() async throws -> ByteChunk? {
        while true {
            try Task.checkCancellation()
            let place = offset.load(ordering: .relaxed)
            switch chain.step(id, at: place, limit: limit) {
            case .chunk(let chunk):
                assert(chunk.count <= limit - place, "no byte beyond the reader's part")
                offset.store(place + chunk.count, ordering: .relaxed)
                return chunk
            case .readBack(let read, let range):
                assert(range.lowerBound == place && range.upperBound <= limit, "the next bytes")
                let chunk = try await read(range)
                guard !chunk.isEmpty, chunk.count <= range.count else {
                    throw CacheError(
                        .storageFailed,
                        detail: "A body on disk returned \(chunk.count) bytes, "
                            + "not 1 to \(range.count)"
                    )
                }
                offset.store(place + chunk.count, ordering: .relaxed)
                chain.advance(id, to: place + chunk.count, limit: limit)
                return chunk
            case .end: return nil
            case .failed(let error): throw error
            case .wait: await chain.waitForBytes(id, beyond: place)
            }
        }
    }

    func cancel() { chain.leave(id) }
}
