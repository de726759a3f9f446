import Synchronization

/// The progress of a request's content to its origin; during an upload no head is overdue.
final class UploadProgress: Sendable {
    /// The least speed assumed for content in memory, whose upload cannot be observed.
    static let bytesPerSecondMin = 64 * 1_024

    /// The time allowed for the part of the upload that cannot be observed.
    let secondsUnseen: Double
    private let pieces = Atomic(0)

    init(of body: BodyStream) {
        let count = body.availableChunk?.count ?? 0
        secondsUnseen = Double(count) / Double(Self.bytesPerSecondMin)
    }

    /// The number of pieces that the origin has read, and of movements that it has told of.
    var pieceCount: Int { pieces.load(ordering: .relaxed) }

    /// The same content, counted as the origin reads it.
    func watching(_ body: BodyStream) -> BodyStream {
        // Content in memory can be sent twice, and must remain repeatable.
        guard body.availableChunk == nil else { return body }
        return BodyStream(WatchedContent(body, self), count: body.count)
    }

    /// `@unchecked Sendable`: `iterator` belongs to the one reader that a body source has at a
    /// time; any thread may note a movement, because the count is atomic.
    private final class WatchedContent: WatchedSource, @unchecked Sendable {
        private var iterator: BodyStream.AsyncIterator
        private let progress: UploadProgress

        init(_ body: BodyStream, _ progress: UploadProgress) {
            iterator = body.makeAsyncIterator()
            self.progress = progress
        }

        func next() async throws -> ByteChunk? {
            let chunk = try await iterator.next()
            noteMovement()
            return chunk
        }

        func noteMovement() { progress.pieces.wrappingAdd(1, ordering: .relaxed) }

        /// The wrapped body is cancelled when its last reference is released.
        func cancel() {}
    }
}
