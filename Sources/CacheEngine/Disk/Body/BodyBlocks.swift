/// Reads the blocks of a body file.
enum BodyBlocks {
    /// Returns the raw bytes of one block; `nil` if they are not the bytes that were written.
    static func read(
        _ number: Int,
        of blocks: [BodyFileFormat.Block],
        rawCount: Int,
        fileID: UInt64,
        from file: OpenFile,
        _ volume: Volume
    ) throws(FileFault) -> ByteChunk? {
        let block = blocks[number]
        let start = number == 0 ? BodyFileFormat.headerBytes : blocks[number - 1].end
        let blockRawCount = min(BodyCodec.blockBytes, rawCount - number * BodyCodec.blockBytes)
        guard block.end > start, block.end - start <= BodyCodec.blockBytes, blockRawCount > 0 else {
            return nil
        }
        var fault: FileFault?
        var isWhole = false
        let stored = ByteChunk(count: block.end - start) { bytes in
            do throws(FileFault) {
                let count = try volume.read(file, into: bytes, at: start)
                let crc = UnsafeRawBufferPointer(bytes).crc32c(from: BodyFileFormat.seed(fileID))
                isWhole = count == bytes.count && crc == block.crc
                if Mutant.skipsBlockChecksum.isOn { isWhole = count == bytes.count }
            } catch { fault = error }
        }
        if let fault { throw fault }
        guard isWhole else { return nil }
        if block.isRaw { return stored.count == blockRawCount ? stored : nil }
        let raw = ByteChunk(count: blockRawCount) { raw in
            isWhole = stored.withUnsafeBytes { BodyCodec.decompressBlock($0, into: raw) }
        }
        return isWhole ? raw : nil
    }

    /// Returns the block table of a finished file; `nil` if it is not the table that was written.
    static func readTable(
        _ reference: BodyReference,
        from file: OpenFile,
        _ volume: Volume
    ) throws(FileFault) -> [BodyFileFormat.Block]? {
        let count = reference.blockCount * BodyFileFormat.Block.sizeBytes
        var fault: FileFault?
        var blocks: [BodyFileFormat.Block]?
        withUnsafeTemporaryAllocation(byteCount: max(1, count), alignment: 16) { scratch in
            let bytes = UnsafeMutableRawBufferPointer(rebasing: scratch[..<count])
            do throws(FileFault) {
                let read = try volume.read(file, into: bytes, at: reference.tableOffset)
                let seed = BodyFileFormat.seed(reference.fileID)
                let table = UnsafeRawBufferPointer(bytes)
                guard read == count, table.crc32c(from: seed) == reference.tableCRC else { return }
                blocks = (0..<reference.blockCount).map {
                    .init(trusted: table, at: $0 * BodyFileFormat.Block.sizeBytes)
                }
            } catch { fault = error }
        }
        if let fault { throw fault }
        return blocks
    }
}
