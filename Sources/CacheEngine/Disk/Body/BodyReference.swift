/// A record's reference to a body in a separate file; it is stored in place of the body.
///
///      0 file id u64 · raw count u64
///     16 file bytes u64 · table offset u64
///     32 block count u32 · table CRC u32
package struct BodyReference: Hashable, Sendable {
    package static let sizeBytes = 40

    package let fileID: UInt64
    package let rawCount: Int
    package let fileBytes: Int
    package let tableOffset: Int
    package let blockCount: Int
    package let tableCRC: UInt32

    package init(
        fileID: UInt64,
        rawCount: Int,
        fileBytes: Int,
        tableOffset: Int,
        blockCount: Int,
        tableCRC: UInt32
    ) {
        self.fileID = fileID
        self.rawCount = rawCount
        self.fileBytes = fileBytes
        self.tableOffset = tableOffset
        self.blockCount = blockCount
        self.tableCRC = tableCRC
    }

    /// Reads a reference; `nil` if `encode` could not have written it.
    package init?(decoding bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.sizeBytes else { return nil }
        fileID = bytes.littleEndian(at: 0)
        rawCount = Int(truncatingIfNeeded: bytes.littleEndian(at: 8, as: UInt64.self))
        fileBytes = Int(truncatingIfNeeded: bytes.littleEndian(at: 16, as: UInt64.self))
        tableOffset = Int(truncatingIfNeeded: bytes.littleEndian(at: 24, as: UInt64.self))
        blockCount = Int(bytes.littleEndian(at: 32, as: UInt32.self))
        tableCRC = bytes.littleEndian(at: 36)
        guard rawCount >= 0, rawCount <= 1 << 46, blockCount == BodyCodec.blockCount(rawCount),
            (BodyFileFormat.headerBytes...1 << 47).contains(tableOffset),
            fileBytes == tableOffset + blockCount * BodyFileFormat.Block.sizeBytes
        else { return nil }
    }

    package func encode(into bytes: UnsafeMutableRawBufferPointer) {
        bytes.setLittleEndian(fileID, at: 0)
        bytes.setLittleEndian(UInt64(rawCount), at: 8)
        bytes.setLittleEndian(UInt64(fileBytes), at: 16)
        bytes.setLittleEndian(UInt64(tableOffset), at: 24)
        bytes.setLittleEndian(UInt32(blockCount), at: 32)
        bytes.setLittleEndian(tableCRC, at: 36)
        let written = UnsafeRawBufferPointer(rebasing: bytes[..<Self.sizeBytes])
        assert(Self(decoding: written) == self, "reads as written")
    }
}

/// The layout of a file that holds one large body.
///
///     0      magic u32 "CEB1" · version u32 · store id 16 B · file id u64, zeros up to 4096
///     4096   blocks of 256 KiB raw, each compressed or raw, end to end
///     table  a `Block` for each
package enum BodyFileFormat {
    package static let magic: UInt32 = 0x3142_4543  // "CEB1"
    package static let version: UInt32 = 1
    package static let headerBytes = 4_096

    /// One row of the table: end of the block u63 · isRaw bit · CRC of the stored bytes u32 · 0 u32.
    package struct Block: Hashable, Sendable {
        package static let sizeBytes = 16
        private static let rawBit: UInt64 = 1 << 63

        package var end: Int
        package var isRaw: Bool
        package var crc: UInt32

        package init(end: Int, isRaw: Bool, crc: UInt32) {
            self.end = end
            self.isRaw = isRaw
            self.crc = crc
        }

        package init(trusted bytes: UnsafeRawBufferPointer, at offset: Int) {
            let word = bytes.littleEndian(at: offset, as: UInt64.self)
            end = Int(word & ~Self.rawBit)
            isRaw = word & Self.rawBit != 0
            crc = bytes.littleEndian(at: offset + 8)
        }

        package func encode(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) {
            bytes.setLittleEndian(UInt64(end) | (isRaw ? Self.rawBit : 0), at: offset)
            bytes.setLittleEndian(crc, at: offset + 8)
            bytes.setLittleEndian(UInt32(0), at: offset + 12)
            assert(
                Self(trusted: UnsafeRawBufferPointer(bytes), at: offset) == self,
                "reads as written"
            )
        }
    }

    package static func header(storeID: KeyHash, fileID: UInt64) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: headerBytes)
        bytes.withUnsafeMutableBytes { bytes in
            bytes.setLittleEndian(magic, at: 0)
            bytes.setLittleEndian(version, at: 4)
            bytes.setLittleEndian(storeID.placement, at: 8)
            bytes.setLittleEndian(storeID.identity, at: 16)
            bytes.setLittleEndian(fileID, at: 24)
        }
        return bytes
    }

    /// The start value of every checksum in a file: blocks of other files do not validate.
    package static func seed(_ fileID: UInt64) -> UInt32 { UInt32(0).crc32c(adding: fileID) }

    /// The name of the file with this number.
    package static func name(_ fileID: UInt64) -> String {
        let digits = String(fileID, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits + ".body"
    }

    /// The number in a file's name; `nil` if the name is not one of a body file.
    package static func fileID(named name: String) -> UInt64? {
        guard let fileID = UInt64(name.prefix(16), radix: 16), Self.name(fileID) == name else {
            return nil
        }
        return fileID
    }
}
