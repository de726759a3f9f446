import Synchronization

/// One reader's place in the body of a flight.
final class BodyChainReader: BodySource {
    private let chain: BodyChain
    private let id: Int
    private let limit: Int
    private let offset: Atomic<Int>

    init(_ chain: BodyChain, id: Int, range: Range<Int>) {
        self.chain = chain
        self.id = id
        limit = range.upperBound
        offset = Atomic(range.lowerBound)
    }

    func next() async throws -> ByteChunk? {
        while true {
            try Task.checkCancellation()
            let place = offset.load(ordering: .relaxed)
            switch chain.step(id, at: place, limit: limit) {
            case .chunk(let chunk):
                offset.store(place + chunk.count, ordering: .relaxed)
                return chunk
            case .readBack(let read, let range):
                let chunk = try await read(range)
                guard !chunk.isEmpty else {
                    throw CacheError(.storageFailed, detail: "A body could not be read back")
                }
                offset.store(place + chunk.count, ordering: .relaxed)
                chain.advance(id, to: place + chunk.count)
                return chunk
            case .end:
                chain.leave(id)
                return nil
            case .failed(let error):
                chain.leave(id)
                throw error
            case .wait:
                await chain.waitForBytes(id, beyond: place)
            }
        }
    }

    func cancel() { chain.leave(id) }
}
