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

    /// The read may be under way, about to begin, or still to come.
    @Test(arguments: [0, 1, 20]) func aReadIsEnded(afterMilliseconds wait: Int) async throws {
        let (stream, sender) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
        let body = EndableBody(stream)
        let reading = Task { try await body.next() }
        if wait > 0 { try await Task.sleep(for: .milliseconds(wait)) }
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
