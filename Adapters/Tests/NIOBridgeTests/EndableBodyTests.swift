import CacheEngine
import NIOBridge
import NIOCore
import Testing

/// A body whose reading is ended from outside.
@Suite(.timeLimit(.minutes(1))) struct EndableBodyTests {
    private struct Ended: Error {}

    @Test func piecesArriveInOrder() async throws {
        let (stream, sender) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
        for text in ["ab", "c"] { sender.yield(ByteBuffer(string: text)) }
        sender.finish()
        let body = EndableBody(stream, bytesMax: 3)
        #expect(try await BodyStream(body).collect() == ByteChunk("abc"))
        #expect(!body.isTooLarge)
    }

    /// The read is under way, or about to begin.
    @Test(arguments: [true, false]) func aReadIsEnded(isUnderWay: Bool) async throws {
        let (stream, sender) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
        let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
        let body = EndableBody(Announced(stream: stream, beginning: beginning))
        let reading = Task { try await body.next() }
        if isUnderWay { for await _ in begun { break } }
        body.end(with: Ended())
        await #expect(throws: Ended.self) { try await reading.value }
        sender.yield(ByteBuffer(string: "late"))
        await #expect(throws: Ended.self) { try await body.next() }
    }

    @Test func cancellationReachesTheRead() async throws {
        let (stream, sender) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
        let body = EndableBody(stream)
        let reading = Task { try await body.next() }
        reading.cancel()
        // A stream ends quietly, or the read has not begun.
        let outcome = await reading.result
        #expect((try? outcome.get()) == nil)
        sender.finish()
    }
}

/// A stream that tells when a read of it begins.
private struct Announced: AsyncSequence, Sendable {
    let stream: AsyncThrowingStream<ByteBuffer, any Error>
    let beginning: AsyncStream<Void>.Continuation

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(pieces: stream.makeAsyncIterator(), beginning: beginning)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var pieces: AsyncThrowingStream<ByteBuffer, any Error>.AsyncIterator
        let beginning: AsyncStream<Void>.Continuation

        mutating func next() async throws -> ByteBuffer? {
            beginning.yield()
            return try await pieces.next()
        }
    }
}
