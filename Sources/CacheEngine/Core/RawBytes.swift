import Platform

extension UnsafeRawBufferPointer {
    /// Whether both buffers hold the same bytes.
    package func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard count > 0, let mine = baseAddress, let theirs = other.baseAddress else { return true }
        return memcmp(mine, theirs, count) == 0
    }

    /// The little-endian integer at `offset`, aligned or not.
    package func littleEndian<Integer: FixedWidthInteger & BitwiseCopyable>(
        at offset: Int,
        as _: Integer.Type = Integer.self
    ) -> Integer {
        Integer(littleEndian: loadUnaligned(fromByteOffset: offset, as: Integer.self))
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Writes `value` at `offset` in little-endian order, aligned or not.
    package func setLittleEndian<Integer: FixedWidthInteger & BitwiseCopyable>(
        _ value: Integer,
        at offset: Int
    ) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: Integer.self)
    }

    /// Copies `bytes` to `offset`.
    package func copy(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        guard !bytes.isEmpty else { return }
        UnsafeMutableRawBufferPointer(rebasing: self[offset..<offset + bytes.count])
            .copyMemory(from: bytes)
    }
}
