public import CacheEngine
public import NIOCore
import Synchronization

/// A body whose pieces are buffers of SwiftNIO.
///
/// Nothing is asked of the sequence before somebody wants to read, so the sequence's own
/// back-pressure reaches whoever sends.
///
/// `@unchecked Sendable`: `buffers`, `iterator` and `roomBytes` belong to the one reader that a body
/// source has at a time, and `cancel` comes when that reader is gone.
public final class BufferBody<Buffers>: BodySource, @unchecked Sendable
where Buffers: AsyncSequence & Sendable, Buffers.Element == ByteBuffer {
    private var buffers: Buffers?
    private var iterator: Buffers.AsyncIterator?
    private var roomBytes: Int
    private let exceeded = Atomic(false)

    /// A body of `buffers` that breaks off where it would be longer than `bytesMax`.
    public init(_ buffers: Buffers, bytesMax: Int = .max) {
        self.buffers = buffers
        roomBytes = bytesMax
    }

    /// Whether there was more than the limit.
    public var isTooLarge: Bool { exceeded.load(ordering: .acquiring) }

    /// The next piece.
    public func next() async throws -> ByteChunk? {
        if let buffers {
            iterator = buffers.makeAsyncIterator()
            self.buffers = nil
        }
        guard let buffer = try await iterator?.next() else { return nil }
        guard buffer.readableBytes <= roomBytes else {
            exceeded.store(true, ordering: .releasing)
            throw CacheError(.bodyTooLarge, detail: "The content is longer than the limit")
        }
        roomBytes -= buffer.readableBytes
        return ByteChunk(buffer)
    }

    /// Lets the sequence go, which is how its sender hears that nobody reads any more.
    public func cancel() {
        buffers = nil
        iterator = nil
    }
}

extension ByteChunk {
    /// A chunk with a copy of the readable bytes.
    public init(_ buffer: ByteBuffer) {
        self = buffer.withUnsafeReadableBytes { ByteChunk(copying: $0) }
    }
}

extension ByteBuffer {
    /// A buffer with a copy of the chunk's bytes.
    public init(_ chunk: ByteChunk) {
        self = chunk.withUnsafeBytes { ByteBuffer(bytes: $0) }
    }
}
