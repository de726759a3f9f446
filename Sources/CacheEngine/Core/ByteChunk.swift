/// A piece of a body: a range of shared, immutable bytes.
///
/// Copying a chunk or taking a part of it costs one retain.
///
/// `@unchecked Sendable`: the storage is filled before the first chunk of it exists and is
/// read-only afterwards, so any number of threads may hold and read it.
public struct ByteChunk: @unchecked Sendable {
    package let storage: ByteStorage
    private let lowerBound: Int
    private let upperBound: Int

    /// The bytes of `storage` at `range`, which must be inside the storage.
    package init(_ storage: ByteStorage, _ range: Range<Int>) {
        precondition(range.lowerBound >= 0)
        self.storage = storage
        lowerBound = range.lowerBound
        upperBound = range.upperBound
    }

    /// A chunk of `count` bytes that `fill` writes.
    public init(count: Int, filledBy fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows
    {
        self.init(try ByteStorage.make(count: count, fill), 0..<count)
    }

    /// A chunk of the bytes that `fill` writes, at most `capacity`.
    ///
    /// `fill` returns the number of bytes written; `nil` makes the initialiser return `nil`.
    package init?(
        capacity: Int,
        filledBy fill: (UnsafeMutableRawBufferPointer) throws -> Int?
    ) rethrows {
        var written: Int?
        let storage = try ByteStorage.make(count: capacity) { written = try fill($0) }
        guard let written else { return nil }
        precondition(written <= capacity)
        self.init(storage, 0..<written)
    }

    /// A chunk that holds a copy of `bytes`.
    public init(copying bytes: UnsafeRawBufferPointer) {
        self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
    }

    /// A chunk that holds a copy of `bytes`.
    public init(_ bytes: [UInt8]) {
        self = bytes.withUnsafeBytes { Self(copying: $0) }
    }

    /// A chunk that holds the UTF-8 bytes of `text`.
    public init(_ text: String) {
        var text = text
        self = text.withUTF8 { Self(copying: UnsafeRawBufferPointer($0)) }
    }

    /// The bytes that each waiting chunk costs besides its content; a peer may send single bytes.
    package static let overheadBytes = 64

    /// A chunk without bytes.
    public static let empty = Self([])

    /// The number of bytes.
    public var count: Int { upperBound - lowerBound }
    /// Whether the chunk has no bytes.
    public var isEmpty: Bool { upperBound == lowerBound }

    /// Calls `body` with the bytes; the pointer must not escape `body`.
    public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        defer { extendLifetime(self) }
        let bytes = storage.unsafeBytes(upperBound)
        return try body(UnsafeRawBufferPointer(rebasing: bytes[lowerBound...]))
    }

    /// The part of the chunk at `range`; it shares the chunk's bytes.
    public subscript(range: Range<Int>) -> ByteChunk {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        return ByteChunk(
            storage,
            lowerBound + range.lowerBound..<lowerBound + range.upperBound
        )
    }

    /// A copy of the bytes.
    public var array: [UInt8] { withUnsafeBytes { [UInt8]($0) } }

    /// The bytes as UTF-8; invalid sequences are replaced.
    public var text: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}

extension ByteChunk: Hashable {
    /// Whether two chunks hold the same bytes.
    public static func == (left: ByteChunk, right: ByteChunk) -> Bool {
        left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in left.hasSameBytes(as: right) }
        }
    }

    /// Feeds the bytes into the hasher.
    public func hash(into hasher: inout Hasher) {
        withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}
