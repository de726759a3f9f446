/// The manifest of a cache directory, stored in two copies: the layout of all other files.
///
///      0 magic u32 "CEM1" · version u32
///      8 uuid 16 B
///     24 hash seed: placement u64 · identity u64
///     40 shard count u32 · segment bytes u32
///     48 created u64                            seconds since 1970
///     56 reserved u32 (0) · CRC u32             over bytes 0 ..< 60
package struct Manifest: Hashable, Sendable {
    package static let sizeBytes = 64
    package static let magic: UInt32 = 0x314D_4543  // "CEM1"
    package static let version: UInt32 = 2
    package static let shardCountMax = 16
    package static let segmentBytesMin = 64 << 10
    package static let segmentBytesMax = 256 << 20

    package var storeID: KeyHash
    package var seed: KeyHash
    package var shardCount: Int
    package var segmentBytes: Int
    package var createdSeconds: UInt64

    package init(
        storeID: KeyHash,
        seed: KeyHash,
        shardCount: Int,
        segmentBytes: Int,
        createdSeconds: UInt64
    ) {
        self.storeID = storeID
        self.seed = seed
        self.shardCount = shardCount
        self.segmentBytes = segmentBytes
        self.createdSeconds = createdSeconds
    }

    /// Reads a manifest from arbitrary bytes; `nil` if `encoded` could not have made them.
    package init?(decoding bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.sizeBytes,
            bytes.littleEndian(at: 0, as: UInt32.self) == Self.magic,
            bytes.littleEndian(at: 4, as: UInt32.self) == Self.version,
            bytes.littleEndian(at: 56, as: UInt32.self) == 0,
            bytes.littleEndian(at: 60, as: UInt32.self) == bytes.crc32c(upTo: 60)
        else { return nil }
        storeID = KeyHash(
            placement: bytes.littleEndian(at: 8),
            identity: bytes.littleEndian(at: 16)
        )
        seed = KeyHash(
            placement: bytes.littleEndian(at: 24),
            identity: bytes.littleEndian(at: 32)
        )
        shardCount = Int(bytes.littleEndian(at: 40, as: UInt32.self))
        segmentBytes = Int(bytes.littleEndian(at: 44, as: UInt32.self))
        createdSeconds = bytes.littleEndian(at: 48)
        guard (1...Self.shardCountMax).contains(shardCount), shardCount.nonzeroBitCount == 1,
            (Self.segmentBytesMin...Self.segmentBytesMax).contains(segmentBytes),
            segmentBytes.nonzeroBitCount == 1
        else { return nil }
    }

    /// Whether these are the first bytes of a manifest that a newer or older engine wrote.
    static func isOfAnotherVersion(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count >= 8 && bytes.littleEndian(at: 0, as: UInt32.self) == magic
            && bytes.littleEndian(at: 4, as: UInt32.self) != version
    }

    package var encoded: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.sizeBytes)
        bytes.withUnsafeMutableBytes { bytes in
            bytes.setLittleEndian(Self.magic, at: 0)
            bytes.setLittleEndian(Self.version, at: 4)
            bytes.setLittleEndian(storeID.placement, at: 8)
            bytes.setLittleEndian(storeID.identity, at: 16)
            bytes.setLittleEndian(seed.placement, at: 24)
            bytes.setLittleEndian(seed.identity, at: 32)
            bytes.setLittleEndian(UInt32(shardCount), at: 40)
            bytes.setLittleEndian(UInt32(segmentBytes), at: 44)
            bytes.setLittleEndian(createdSeconds, at: 48)
            bytes.setLittleEndian(UnsafeRawBufferPointer(bytes).crc32c(upTo: 60), at: 60)
            assert(Self(decoding: UnsafeRawBufferPointer(bytes)) == self, "reads as written")
        }
        return bytes
    }
}
