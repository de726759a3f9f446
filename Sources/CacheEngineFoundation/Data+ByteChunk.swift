public import CacheEngine
public import Foundation

extension ByteChunk {
    /// Creates a chunk that holds a copy of `data`.
    public init(_ data: Data) {
        self.init(count: data.count) { _ = data.copyBytes(to: $0) }
    }
}

extension Data {
    /// Creates a copy of the bytes of `chunk`.
    public init(_ chunk: ByteChunk) {
        self = chunk.withUnsafeBytes { Data($0) }
    }

    /// Creates a copy of the bytes of the chunks.
    init(joining chunks: [ByteChunk]) {
        self.init(capacity: chunks.reduce(0) { $0 + $1.count })
        for chunk in chunks { chunk.withUnsafeBytes { append(contentsOf: $0) } }
    }
}
