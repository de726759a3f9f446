#if !canImport(Compression)
    internal import CLZ4
#endif

/// The conversion between body bytes and stored bytes.
///
/// A body of up to one block is stored as one LZ4 block. A larger one is stored as a table of the
/// blocks' end offsets (u32 each, counted from the end of the table), followed by the blocks. A
/// block as long as its raw bytes is raw. A body that compression shortens by less than a tenth is
/// stored raw.
package enum BodyCodec {
    /// The raw size of one block; no decompression produces more than this at once.
    package static let blockBytes = 256 << 10
    /// For a body above this size, only its first bytes are compressed as a trial.
    private static let sampleThresholdBytes = 16 << 10
    private static let sampleBytes = 4 << 10

    /// The room that `compress` may need for a body of `rawCount` bytes.
    package static func storedCountMax(rawCount: Int) -> Int {
        rawCount + 4 * blockCount(rawCount)
    }

    package static func blockCount(_ rawCount: Int) -> Int {
        (rawCount + blockBytes - 1) / blockBytes
    }

    /// Writes the stored form of `raw` to `stored`, which must have room for `storedCountMax`.
    package static func compress(
        _ raw: UnsafeRawBufferPointer,
        into stored: UnsafeMutableRawBufferPointer
    ) -> (codec: EntryHead.Codec, storedCount: Int) {
        assert(stored.count >= storedCountMax(rawCount: raw.count), "room for the worst case")
        if isWorthTrying(raw) {
            let limit = raw.count / 10 * 9
            if raw.count <= blockBytes {
                let count = compressBlock(raw, into: .init(rebasing: stored[..<limit]))
                if let count {
                    let written = UnsafeRawBufferPointer(rebasing: stored[..<count])
                    assert(isReadable(written, .lz4, as: raw), "reads as written")
                    return (.lz4, count)
                }
            } else if let count = compressBlocks(raw, into: stored), count <= limit {
                let written = UnsafeRawBufferPointer(rebasing: stored[..<count])
                assert(isReadable(written, .lz4Blocks, as: raw), "reads as written")
                return (.lz4Blocks, count)
            }
        }
        stored.copy(raw, at: 0)
        return (.raw, raw.count)
    }

    /// Fills `raw` from its stored form; returns `false` unless it decompresses to exactly that
    /// size.
    package static func decompress(
        _ stored: UnsafeRawBufferPointer,
        _ codec: EntryHead.Codec,
        into raw: UnsafeMutableRawBufferPointer
    ) -> Bool {
        switch codec {
        case .raw:
            guard stored.count == raw.count else { return false }
            raw.copy(stored, at: 0)
            return true
        case .lz4:
            return decompressBlock(stored, into: raw)
        case .lz4Blocks:
            return decompressBlocks(stored, into: raw)
        }
    }

    /// Whether the stored form of a body gives back its bytes.
    static func isReadable(
        _ stored: UnsafeRawBufferPointer,
        _ codec: EntryHead.Codec,
        as raw: UnsafeRawBufferPointer
    ) -> Bool {
        let again = UnsafeMutableRawBufferPointer.allocate(byteCount: raw.count, alignment: 1)
        defer { again.deallocate() }
        return decompress(stored, codec, into: again)
            && UnsafeRawBufferPointer(again).hasSameBytes(as: raw)
    }

    /// Compresses one block into `stored`; returns `nil` if it does not fit.
    package static func compressBlock(
        _ raw: UnsafeRawBufferPointer,
        into stored: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard !raw.isEmpty, !stored.isEmpty else { return nil }
        #if canImport(Compression)
            return AppleLZ4.compress(raw, into: stored)
        #else
            let count = LZ4_compress_default(
                raw.baseAddress?.assumingMemoryBound(to: CChar.self),
                stored.baseAddress?.assumingMemoryBound(to: CChar.self),
                Int32(raw.count),
                Int32(stored.count)
            )
            return count > 0 ? Int(count) : nil
        #endif
    }

    package static func decompressBlock(
        _ stored: UnsafeRawBufferPointer,
        into raw: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard !raw.isEmpty, !stored.isEmpty, raw.count <= blockBytes else { return false }
        #if canImport(Compression)
            return AppleLZ4.decompress(stored, into: raw)
        #else
            let count = LZ4_decompress_safe(
                stored.baseAddress?.assumingMemoryBound(to: CChar.self),
                raw.baseAddress?.assumingMemoryBound(to: CChar.self),
                Int32(stored.count),
                Int32(raw.count)
            )
            return Int(count) == raw.count
        #endif
    }

    private static func isWorthTrying(_ raw: UnsafeRawBufferPointer) -> Bool {
        guard raw.count >= recordUnitBytes else { return false }
        guard raw.count > sampleThresholdBytes else { return true }
        return withUnsafeTemporaryAllocation(
            byteCount: sampleBytes / 10 * 9,
            alignment: 8
        ) { scratch in
            compressBlock(.init(rebasing: raw[..<sampleBytes]), into: scratch) != nil
        }
    }

    private static func compressBlocks(
        _ raw: UnsafeRawBufferPointer,
        into stored: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let tableBytes = 4 * blockCount(raw.count)
        var end = 0
        for block in 0..<blockCount(raw.count) {
            let source = rawBlock(block, of: raw)
            let start = tableBytes + end
            let room = UnsafeMutableRawBufferPointer(
                rebasing: stored[start..<start + source.count]
            )
            let smaller = UnsafeMutableRawBufferPointer(rebasing: room[..<(source.count - 1)])
            if let count = compressBlock(source, into: smaller) {
                end += count
            } else {
                room.copy(source, at: 0)
                end += source.count
            }
            assert(end <= (block + 1) * blockBytes, "no block grows")
            stored.setLittleEndian(UInt32(end), at: 4 * block)
        }
        return tableBytes + end
    }

    private static func decompressBlocks(
        _ stored: UnsafeRawBufferPointer,
        into raw: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let tableBytes = 4 * blockCount(raw.count)
        guard raw.count > blockBytes, stored.count > tableBytes else { return false }
        var start = tableBytes
        for block in 0..<blockCount(raw.count) {
            let end = tableBytes + Int(stored.littleEndian(at: 4 * block, as: UInt32.self))
            guard end > start, end <= stored.count else { return false }
            let source = UnsafeRawBufferPointer(rebasing: stored[start..<end])
            let target = UnsafeMutableRawBufferPointer(rebasing: raw[rawRange(block, raw.count)])
            if source.count == target.count {
                target.copy(source, at: 0)
            } else if !decompressBlock(source, into: target) {
                return false
            }
            start = end
        }
        return start == stored.count
    }

    private static func rawRange(_ block: Int, _ rawCount: Int) -> Range<Int> {
        block * blockBytes..<min(rawCount, (block + 1) * blockBytes)
    }

    private static func rawBlock(
        _ block: Int,
        of raw: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        .init(rebasing: raw[rawRange(block, raw.count)])
    }
}
