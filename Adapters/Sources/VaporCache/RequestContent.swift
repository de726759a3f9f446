import CacheEngine
import NIOCore
import Synchronization
import Vapor

/// The pieces of a request's content, which end with an error unless the content is whole.
///
/// If the first piece of coded content cannot be decoded, Vapor has no piece and no error: its
/// decoder drops an error that comes before the first piece. Content that is decoded to nothing has
/// one piece, which is empty.
final class RequestContent: AsyncSequence, Sendable {
    private let body: Request.Body
    private let isDecoded: Bool
    private let broken = Atomic(false)

    /// Creates the content of `body`, from which Vapor has removed a coding if `isDecoded`.
    init(_ body: Request.Body, isDecoded: Bool) {
        self.body = body
        self.isDecoded = isDecoded
    }

    /// Whether the content was found not to be whole.
    var isBroken: Bool { broken.load(ordering: .acquiring) }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(content: self, pieces: body.makeAsyncIterator())
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let content: RequestContent
        fileprivate var pieces: Request.Body.AsyncIterator
        private var hasBegun = false

        fileprivate init(content: RequestContent, pieces: Request.Body.AsyncIterator) {
            self.content = content
            self.pieces = pieces
        }

        mutating func next() async throws -> ByteBuffer? {
            do {
                let piece = try await pieces.next()
                guard piece == nil, !hasBegun, content.isDecoded else {
                    hasBegun = true
                    return piece
                }
                try Task.checkCancellation()
                throw CacheError(.requestInvalid, detail: "The content cannot be decoded")
            } catch {
                // An origin that reads no further says nothing about the content.
                guard !(error is CancellationError) else { throw error }
                content.broken.store(true, ordering: .releasing)
                throw error
            }
        }
    }
}
