import Synchronization

/// An origin's body, checked against its announced length.
///
/// Bytes beyond the length are dropped; a body that is too short ends with an error.
///
/// `@unchecked Sendable`: `iterator`, `received` and `onFailure` belong to the one reader that a body
/// source has at a time; the state that others use is atomic.
final class MeasuredBody: BodySource, @unchecked Sendable {
    private var iterator: BodyStream.AsyncIterator
    private var received = 0
    private let expected: Int?
    /// Called if the origin breaks off the body; set before the reader begins.
    var onFailure: (@Sendable (any Error) -> Void)?
    private let onEnd: @Sendable (_ bytes: Int) -> Void
    private let hasEnded = Atomic(false)
    private let exceeded = Atomic(false)

    init(_ body: BodyStream, expected: Int?, onEnd: @escaping @Sendable (_ bytes: Int) -> Void) {
        iterator = body.makeAsyncIterator()
        self.expected = expected
        self.onEnd = onEnd
    }

    /// Whether the body is longer than announced; such a body is delivered, and never stored.
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
                let error = CacheError.originFailure(error)
                // A reader that is cancelled, or has cancelled the body, ends it itself.
                let isCancelled = error is CancellationError || Task.isCancelled
                if end(), !isCancelled { onFailure?(error) }
                throw error
            }
        }
    }

    func cancel() {
        // The source learns of it now, and not when the last holder of this body is released.
        iterator = BodyStream.empty.makeAsyncIterator()
        end()
    }

    deinit { end() }

    private func checkLength() throws {
        guard let expected, received < expected else { return }
        throw CacheError.bodyEnded(after: received, of: expected)
    }

    /// Ends the body; returns `false` if it has ended before.
    @discardableResult
    private func end() -> Bool {
        guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        onEnd(received)
        return true
    }
}
