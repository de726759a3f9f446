/// A piece of a body: a range of bytes that are shared, never copied, and never change.
///
/// Copying a chunk or taking a part of it costs a retain.
///
/// `@unchecked Sendable`: the storage is filled before the first chunk over it exists and is
/// read-only afterwards, so any number of threads may hold and read it.
public struct ByteChunk: @unchecked Sendable {
    package let storage: ByteStorage
    private let lowerBound: Int
    private let upperBound: Int

    /// The bytes of `storage` at `range`, all of which are there.
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

    /// A chunk of at most `capacity` bytes: as many as `fill` says it wrote; nil when it says nil.
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

    /// What a chunk that waits takes besides its bytes: a peer may send them one by one.
    package static let overheadBytes = 64

    /// A chunk without bytes.
    public static let empty = Self([])

    /// How many bytes there are.
    public var count: Int { upperBound - lowerBound }
    /// Whether there are no bytes.
    public var isEmpty: Bool { upperBound == lowerBound }

    /// Calls `body` with the bytes, which must not escape it.
    public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        defer { extendLifetime(self) }
        let bytes = storage.unsafeBytes(upperBound)
        return try body(UnsafeRawBufferPointer(rebasing: bytes[lowerBound...]))
    }

    /// The part of the chunk at `range`, sharing its bytes.
    public subscript(range: Range<Int>) -> ByteChunk {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        return ByteChunk(
            storage,
            lowerBound + range.lowerBound..<lowerBound + range.upperBound
        )
    }

    /// A copy of the bytes.
    public var array: [UInt8] { withUnsafeBytes { [UInt8]($0) } }

    /// The bytes read as UTF-8, damaged sequences replaced.
    public var text: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}

extension ByteChunk: Equatable {
    /// Whether two chunks hold the same bytes.
    public static func == (left: ByteChunk, right: ByteChunk) -> Bool {
        left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in left.hasSameBytes(as: right) }
        }
    }
}
