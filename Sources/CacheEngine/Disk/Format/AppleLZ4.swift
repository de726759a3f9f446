#if canImport(Compression)
    internal import Compression

    /// LZ4 blocks by Apple's Compression framework, in the format of liblz4: `COMPRESSION_LZ4_RAW`.
    ///
    /// It is written by reading Apple's documentation, and has not been run.
    enum AppleLZ4 {
        /// Compresses one block into `stored`; returns `nil` if it does not fit.
        static func compress(
            _ raw: UnsafeRawBufferPointer,
            into stored: UnsafeMutableRawBufferPointer
        ) -> Int? {
            guard let source = raw.baseAddress, let target = stored.baseAddress else { return nil }
            let count = compression_encode_buffer(
                target.assumingMemoryBound(to: UInt8.self),
                stored.count,
                source.assumingMemoryBound(to: UInt8.self),
                raw.count,
                nil,
                COMPRESSION_LZ4_RAW
            )
            return count > 0 ? count : nil
        }

        /// Fills `raw` from one block; returns `false` unless it decompresses to exactly that size.
        static func decompress(
            _ stored: UnsafeRawBufferPointer,
            into raw: UnsafeMutableRawBufferPointer
        ) -> Bool {
            guard let source = stored.baseAddress else { return false }
            // The framework cuts a block that is too large to the room, and reports the room's
            // size. With one byte more, such a block has another size than `raw`.
            return withUnsafeTemporaryAllocation(byteCount: raw.count + 1, alignment: 1) { room in
                guard let target = room.baseAddress else { return false }
                let count = compression_decode_buffer(
                    target.assumingMemoryBound(to: UInt8.self),
                    room.count,
                    source.assumingMemoryBound(to: UInt8.self),
                    stored.count,
                    nil,
                    COMPRESSION_LZ4_RAW
                )
                guard count == raw.count else { return false }
                raw.copy(UnsafeRawBufferPointer(rebasing: room[..<count]), at: 0)
                return true
            }
        }
    }
#endif
