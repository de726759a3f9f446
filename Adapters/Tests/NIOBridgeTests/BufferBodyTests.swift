import CacheEngine
import NIOBridge
import NIOCore
import Testing

/// Bodies pass between the engine and SwiftNIO unchanged, and within their limit.
@Suite(.timeLimit(.minutes(1))) struct BufferBodyTests {
    @Test func piecesArriveInOrder() async throws {
        let body = BufferBody(Pieces(["ab", "c", "def"]))
        #expect(try await BodyStream(body).collect() == ByteChunk("abcdef"))
        #expect(!body.isTooLarge)
    }

    @Test func aBodyOfTheLimitIsComplete() async throws {
        let body = BufferBody(Pieces(["ab", "cd"]), bytesMax: 4)
        #expect(try await BodyStream(body).collect() == ByteChunk("abcd"))
        #expect(!body.isTooLarge)
    }

    @Test func aBodyOverTheLimitThrows() async throws {
        let body = BufferBody(Pieces(["ab", "cde"]), bytesMax: 4)
        #expect(try await body.next() == ByteChunk("ab"))
        let error = await #expect(throws: CacheError.self) { try await body.next() }
        #expect(error?.code == .bodyTooLarge)
        #expect(body.isTooLarge)
    }

    @Test func anErrorOfTheSenderBreaksTheBodyOff() async throws {
        let (stream, sender) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
        sender.yield(ByteBuffer(string: "ab"))
        sender.finish(throwing: CancellationError())
        let body = BufferBody(stream)
        #expect(try await body.next() == ByteChunk("ab"))
        await #expect(throws: CancellationError.self) { try await body.next() }
    }

    @Test func cancellationEndsTheSequence() async throws {
        let (stream, sender) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
        let body = BufferBody(stream)
        sender.yield(ByteBuffer(string: "ab"))
        _ = try await body.next()
        body.cancel()
        #expect(try await body.next() == nil)
    }

    @Test func chunksAndBuffersHoldTheSameBytes() {
        let bytes = [UInt8](0...255)
        #expect(ByteChunk(ByteBuffer(bytes: bytes)) == ByteChunk(bytes))
        #expect(ByteBuffer(ByteChunk(bytes)) == ByteBuffer(bytes: bytes))
        var partlyRead = ByteBuffer(bytes: bytes)
        partlyRead.moveReaderIndex(forwardBy: 250)
        #expect(ByteChunk(partlyRead) == ByteChunk([UInt8](250...255)))
    }
}

/// Buffers that are there from the beginning.
private struct Pieces: AsyncSequence, Sendable {
    let texts: [String]

    init(_ texts: [String]) { self.texts = texts }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(texts: texts[...]) }

    struct AsyncIterator: AsyncIteratorProtocol {
        var texts: ArraySlice<String>

        mutating func next() async -> ByteBuffer? {
            texts.popFirst().map { ByteBuffer(string: $0) }
        }
    }
}
