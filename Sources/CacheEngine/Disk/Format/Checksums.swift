internal import CEngineShims

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
