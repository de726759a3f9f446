internal import CEngineShims
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

extension [UInt8] {
    /// Appends `value` in little-endian order.
    mutating func append(littleEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }
}

extension UnsafeRawBufferPointer {
    /// The CRC-32C of the bytes, continuing from `crc`.
    func crc32c(from crc: UInt32 = 0) -> UInt32 {
        guard let start = baseAddress else { return crc }
        return ce_crc32c(crc, start, count)
    }

    /// The CRC-32C of the first `end` bytes.
    func crc32c(upTo end: Int) -> UInt32 { UnsafeRawBufferPointer(rebasing: self[..<end]).crc32c() }

    /// The CRC-32C of the bytes in `range`, continuing from `crc`.
    func crc32c(_ range: Range<Int>, from crc: UInt32) -> UInt32 {
        UnsafeRawBufferPointer(rebasing: self[range]).crc32c(from: crc)
    }
}

extension UInt32 {
    /// Continues a CRC-32C with the eight little-endian bytes of `value`.
    func crc32c(adding value: UInt64) -> UInt32 {
        withUnsafeBytes(of: value.littleEndian) { $0.crc32c(from: self) }
    }
}
