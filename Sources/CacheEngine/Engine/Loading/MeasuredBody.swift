import Synchronization

/// An origin's body, held to the length it announced.
///
/// Bytes beyond the length are dropped; too few are an error, never a clean end.
///
/// `@unchecked Sendable`: `iterator` and `received` belong to the one reader that a body source has
/// at a time; what others touch is atomic.
final class MeasuredBody: BodySource, @unchecked Sendable {
    private var iterator: BodyStream.AsyncIterator
    private var received = 0
    private let expected: Int?
    private let onEnd: @Sendable (_ bytes: Int) -> Void
    private let hasEnded = Atomic(false)
    private let exceeded = Atomic(false)

    init(_ body: BodyStream, expected: Int?, onEnd: @escaping @Sendable (_ bytes: Int) -> Void) {
        iterator = body.makeAsyncIterator()
        self.expected = expected
        self.onEnd = onEnd
    }

    /// Whether there was more than announced: such a body is delivered, and never stored.
    var isOverlong: Bool { exceeded.load(ordering: .acquiring) }

    func next() async throws -> ByteChunk? {
        while true {
            do {
                guard let chunk = try await iterator.next() else {
                    try checkLength()
                    end()
                    return nil
                }
                let room = (expected ?? .max) - received
                if chunk.count > room {
                    exceeded.store(true, ordering: .releasing)
                    guard room > 0 else {
                        end()
                        return nil
                    }
                }
                let accepted = chunk.count > room ? chunk[0..<room] : chunk
                received += accepted.count
                return accepted
            } catch {
                end()
                throw HTTPCache.typed(error)
            }
        }
    }

    func cancel() { end() }

    deinit { end() }

    private func checkLength() throws {
        guard let expected, received < expected else { return }
        throw CacheError(
            .bodyTruncated,
            detail: "The body ended after \(received) of \(expected) bytes"
        )
    }

    private func end() {
        guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
        onEnd(received)
    }
}
