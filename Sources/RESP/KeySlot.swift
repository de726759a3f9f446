/// The slot of a key in a cluster, which decides the server that has the key.
///
/// CRC-16/XMODEM of the key modulo 16,384. If the key has a `{`, a later `}` and bytes between them,
/// only those bytes are hashed, so that keys with a common tag share a slot.
package enum KeySlot {
    /// The number of slots of every cluster.
    package static let count = 16_384

    package static func slot(of key: UnsafeRawBufferPointer) -> UInt16 {
        checksum(hashedPart(of: key)) % UInt16(count)
    }

    package static func slot(of key: [UInt8]) -> UInt16 { key.withUnsafeBytes { slot(of: $0) } }

    private static func hashedPart(of key: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer>
    {
        if Mutant.hashesTheWholeKey.isOn { return key[...] }
        guard let open = key.firstIndex(of: UInt8(ascii: "{")),
            let close = key[(open + 1)...].firstIndex(of: UInt8(ascii: "}")), close > open + 1
        else { return key[...] }
        return key[(open + 1)..<close]
    }

    private static func checksum(_ bytes: Slice<UnsafeRawBufferPointer>) -> UInt16 {
        bytes.reduce(0) { sum, byte in sum << 8 ^ table[Int(UInt8(sum >> 8) ^ byte)] }
    }

    /// The remainder of each byte by the polynomial 0x1021.
    private static let table: [UInt16] = (0..<256).map { byte in
        (0..<8).reduce(UInt16(byte) << 8) { sum, _ in
            sum & 0x8000 == 0 ? sum << 1 : sum << 1 ^ 0x1021
        }
    }
}
