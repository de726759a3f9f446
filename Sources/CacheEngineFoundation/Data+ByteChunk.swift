public import CacheEngine
public import Foundation

extension ByteChunk {
    /// A chunk that holds a copy of `data`.
    public init(_ data: Data) {
        self.init(count: data.count) { _ = data.copyBytes(to: $0) }
    }
}

extension Data {
    /// A copy of the bytes of `chunk`.
    public init(_ chunk: ByteChunk) {
        self = chunk.withUnsafeBytes { Data($0) }
    }
}

extension CacheInfo {
    /// When the answer was stored, for a stored answer.
    public var storedAt: Date? {
        storedAtSeconds.map { Date(timeIntervalSince1970: TimeInterval($0)) }
    }
}
