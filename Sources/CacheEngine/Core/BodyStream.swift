import Synchronization

/// A source of body bytes that arrive over time.
///
/// One reader at a time calls `next`, and not again after it returned `nil` or threw.
public protocol BodySource: AnyObject, Sendable {
    /// Returns the next piece, or `nil` at the end; throws if the body breaks off.
    func next() async throws -> ByteChunk?
    /// Tells the source that its reader is gone and needs no more bytes.
    ///
    /// Called at most once, and never after the end or while `next` runs.
    func cancel()
}

/// A source whose owner watches how far it gets.
package protocol WatchedSource: BodySource {
    /// Tells the owner that bytes which the source has delivered are on their way.
    func noteMovement()
}

/// A body as an asynchronous sequence of chunks.
///
/// A stored body can be read repeatedly, a body that arrives from a network only once: a second
/// reading throws.
public struct BodyStream: AsyncSequence, Sendable {
    /// The elements of a body.
    public typealias Element = ByteChunk

    /// At most three words, because each response copies a body.
    enum Content: Sendable {
        case chunk(ByteChunk)
        /// Indirect, because it is the largest case and the rarest.
        indirect case stored(any BodyReader, Range<Int>)
        case parts([BodyStream])
        case source(SourceLease, count: OptionalNumber<Int>)
    }

    let content: Content

    private init(_ content: Content) { self.content = content }

    /// A body that is completely in memory.
    public init(_ chunk: ByteChunk) { self.init(.chunk(chunk)) }

    /// A body without bytes.
    public static let empty = Self(.empty)

    /// A body that `source` delivers; a negative `count` is an unknown one.
    ///
    /// The source is cancelled when the last copy of the stream is released.
    public init(_ source: any BodySource, count: Int? = nil) {
        let known = count.flatMap { $0 < 0 ? nil : $0 }
        self.init(.source(SourceLease(source), count: OptionalNumber(known)))
    }

    /// A body of the chunks that an asynchronous sequence delivers, for example
    /// `BodyStream(lines.map { ByteChunk($0) })`.
    ///
    /// The sequence is read at the pace of the body's reader, and its iterator is released with
    /// the last copy of the stream. An error of the sequence breaks the body off.
    public init<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks, count: Int? = nil)
    where Chunks.Element == ByteChunk {
        self.init(SequenceSource(chunks), count: count)
    }

    /// A body that is read from a store piece by piece.
    public init(_ reader: any BodyReader, range: Range<Int>? = nil) {
        self.init(.stored(reader, range ?? 0..<reader.count))
    }

    init(parts: [BodyStream]) { self.init(.parts(parts)) }

    /// The length in bytes, if it is known before the end.
    public var count: Int? {
        switch content {
        case .chunk(let chunk): chunk.count
        case .stored(_, let range): range.count
        case .source(_, let count): count.value
        case .parts(let parts):
            parts.reduce(0) { sum, part in
                guard let sum, let count = part.count else { return nil }
                return sum + count
            }
        }
    }

    /// The whole body, if it is already in memory.
    public var availableChunk: ByteChunk? {
        if case .chunk(let chunk) = content { return chunk }
        return nil
    }

    /// Whether the whole body is already in memory.
    package var isAvailable: Bool {
        if case .chunk = content { return true }
        return false
    }

    /// Tells the owner of the source, if it watches it, that delivered bytes are on their way; for an
    /// origin that reads the content before it sends it.
    package func noteMovement() {
        if case .source(let lease, _) = content { lease.noteMovement() }
    }

    /// Reads the whole body into one chunk.
    ///
    /// - Throws: `CacheError.Code.bodyTooLarge` if the body is longer than `limit`.
    public func collect(upTo limit: ByteCount = .megabytes(64)) async throws -> ByteChunk {
        if let count, count > limit.bytes { throw Self.tooLarge(limit) }
        if let chunk = availableChunk { return chunk }
        var pieces: [ByteChunk] = []
        var total = 0
        for try await piece in self {
            total += piece.count
            guard total <= limit.bytes else { throw Self.tooLarge(limit) }
            pieces.append(piece)
        }
        return ByteChunk(joining: pieces)
    }

    private static func tooLarge(_ limit: ByteCount) -> CacheError {
        CacheError(.bodyTooLarge, detail: "The body is longer than \(limit.bytes) bytes")
    }
}

extension BodyStream {
    /// Reads a body from its beginning.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var content: Content?
        private var parts: [BodyStream] = []
        private var partIndex = 0
        /// Whether this iterator has begun the source that it reads.
        private var hasBegun = false

        init(_ content: Content) { self.content = content }

        /// Returns the next chunk, which is never empty, or `nil` at the end.
        public mutating func next() async throws -> ByteChunk? {
            while let current = content {
                switch current {
                case .chunk(let chunk):
                    advance()
                    if !chunk.isEmpty { return chunk }
                case .stored(let reader, let range):
                    if let chunk = try await read(reader, range) { return chunk }
                case .source(let lease, _):
                    if !hasBegun {
                        try lease.begin()
                        hasBegun = true
                    }
                    guard let chunk = try await lease.next() else {
                        advance()
                        continue
                    }
                    if !chunk.isEmpty { return chunk }
                case .parts(let inner):
                    content = nil
                    parts = inner
                    partIndex = 0
                    advance()
                }
            }
            return nil
        }

        private mutating func advance() {
            hasBegun = false
            content = nil
            if partIndex < parts.count {
                content = parts[partIndex].content
                partIndex += 1
            }
        }

        private mutating func read(
            _ reader: any BodyReader,
            _ range: Range<Int>
        ) async throws -> ByteChunk? {
            guard !range.isEmpty else {
                advance()
                return nil
            }
            let chunk = try await reader.read(range)
            guard !chunk.isEmpty, chunk.count <= range.count else {
                throw CacheError(
                    .bodyTruncated,
                    detail: "The reader of a stored body returned \(chunk.count) bytes, "
                        + "not 1 to \(range.count)"
                )
            }
            content = .stored(reader, range.lowerBound + chunk.count..<range.upperBound)
            return chunk
        }
    }

    /// An iterator over the body's chunks.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(content) }
}

extension ByteChunk {
    /// One chunk with the bytes of all `pieces`; a single piece is shared, not copied.
    package init(joining pieces: [ByteChunk]) {
        if pieces.count == 1 {
            self = pieces[0]
            return
        }
        self.init(count: pieces.byteCount) { pieces.copy(to: $0) }
    }
}

extension Collection<ByteChunk> {
    /// The number of bytes of all pieces.
    var byteCount: Int { reduce(0) { $0 + $1.count } }

    /// Copies the pieces, one after the other, to `target`, which has their size.
    func copy(to target: UnsafeMutableRawBufferPointer) {
        var offset = 0
        for piece in self {
            piece.withUnsafeBytes { target.copy($0, at: offset) }
            offset += piece.count
        }
        assert(offset == target.count, "the pieces are the whole")
    }
}

/// Shares a body source among its readers, and cancels it when the last of them is released.
package final class SourceLease: Sendable {
    private let source: any BodySource
    private let hasEnded = Atomic(false)
    private let hasReader = Atomic(false)

    package init(_ source: any BodySource) { self.source = source }

    func noteMovement() { (source as? any WatchedSource)?.noteMovement() }

    /// Permits the first reader to begin: a second one would take the rest for the whole.
    package func begin() throws {
        guard hasReader.exchange(true, ordering: .relaxed), !Mutant.readsTheRestAsWhole.isOn else {
            return
        }
        throw CacheError(
            .requestInvalid,
            detail: "The body comes once, and its reading has begun before; keep its bytes"
        )
    }

    package func next() async throws -> ByteChunk? {
        if hasEnded.load(ordering: .acquiring) { return nil }
        do {
            if let chunk = try await source.next() { return chunk }
            hasEnded.store(true, ordering: .releasing)
            return nil
        } catch {
            hasEnded.store(true, ordering: .releasing)
            throw error
        }
    }

    deinit {
        if !hasEnded.load(ordering: .acquiring) { source.cancel() }
    }
}

/// The chunks of an asynchronous sequence as a body.
///
/// The iterator is made when the first chunk is wanted, and released with the body.
actor SequenceSource<Chunks: AsyncSequence & Sendable>: BodySource
where Chunks.Element == ByteChunk {
    private enum State {
        case unread(Chunks)
        case reading(Chunks.AsyncIterator)
        case ended
    }

    private var state: State

    init(_ chunks: Chunks) { state = .unread(chunks) }

    func next() async throws -> ByteChunk? {
        var iterator: Chunks.AsyncIterator
        switch state {
        case .unread(let chunks): iterator = chunks.makeAsyncIterator()
        case .reading(let current): iterator = current
        case .ended: return nil
        }
        // A sequence that threw is not asked again.
        state = .ended
        guard let chunk = try await iterator.next(isolation: self) else { return nil }
        state = .reading(iterator)
        return chunk
    }

    /// Nothing to do: the body releases this source, and with it the iterator.
    nonisolated func cancel() {}
}
