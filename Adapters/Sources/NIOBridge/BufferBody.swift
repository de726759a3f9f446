public import CacheEngine
public import NIOCore
import Synchronization

/// A body whose pieces are buffers of SwiftNIO.
///
/// The sequence is iterated only when the reader asks, so its back-pressure reaches the sender.
///
/// `@unchecked Sendable`: only the single reader of a body source uses `buffers`, `iterator` and
/// `roomBytes`, and `cancel` is called after that reader has ended.
public final class BufferBody<Buffers>: BodySource, @unchecked Sendable
where Buffers: AsyncSequence & Sendable, Buffers.Element == ByteBuffer {
    private var buffers: Buffers?
    private var iterator: Buffers.AsyncIterator?
    private var roomBytes: Int
    private let exceeded = Atomic(false)

    /// Creates a body of `buffers` that throws if it is longer than `bytesMax`.
    public init(_ buffers: Buffers, bytesMax: Int = .max) {
        self.buffers = buffers
        roomBytes = bytesMax
    }

    /// Whether the body was longer than the limit.
    public var isTooLarge: Bool { exceeded.load(ordering: .acquiring) }

    /// Returns the next piece.
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

    /// Releases the sequence, which tells its sender that reading has ended.
    public func cancel() {
        buffers = nil
        iterator = nil
    }
}

extension ByteChunk {
    /// Creates a chunk with a copy of the readable bytes.
    public init(_ buffer: ByteBuffer) {
        self = buffer.withUnsafeReadableBytes { ByteChunk(copying: $0) }
    }
}

extension ByteBuffer {
    /// Creates a buffer with a copy of the chunk's bytes.
    public init(_ chunk: ByteChunk) {
        self = chunk.withUnsafeBytes { ByteBuffer(bytes: $0) }
    }
}
