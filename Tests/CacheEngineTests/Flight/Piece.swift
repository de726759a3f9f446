import CacheEngine

/// The bytes of a test's body from `offset`: each is the lowest byte of its own offset.
func piece(_ count: Int, from offset: Int = 0) -> ByteChunk {
    ByteChunk((offset..<offset + count).map { UInt8(truncatingIfNeeded: $0) })
}
