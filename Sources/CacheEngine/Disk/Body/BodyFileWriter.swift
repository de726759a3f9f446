/// A body file while it is written: each full block is written at once, the table at the end.
///
/// Every method works on the calling thread; the caller ensures that the thread may wait.
struct BodyFileWriter: ~Copyable {
    let fileID: UInt64
    let path: String
    private let volume: Volume
    private let file: OpenFile
    private var blocks: [BodyFileFormat.Block] = []
    private var position = BodyFileFormat.headerBytes
    /// The raw bytes after the last full block.
    private var pending: [UInt8] = []
    private var scratch: [UInt8] = []
    private(set) var rawCount = 0
    private var isOpen = true

    private init(fileID: UInt64, path: String, volume: Volume, file: OpenFile) {
        self.fileID = fileID
        self.path = path
        self.volume = volume
        self.file = file
    }

    /// Creates the file under a random number that no other file has.
    static func create(in directory: String, storeID: KeyHash, _ volume: Volume) throws(FileFault)
        -> BodyFileWriter
    {
        let fileID = UInt64.random(in: 1 ... .max)
        let path = directory + "/" + BodyFileFormat.name(fileID)
        let file = try volume.open(path, .createNew)
        do throws(FileFault) {
            let header = BodyFileFormat.header(storeID: storeID, fileID: fileID)
            try write(header[...], to: file, at: 0, on: volume)
        } catch {
            volume.close(file)
            try? volume.unlink(path)
            throw error
        }
        return BodyFileWriter(fileID: fileID, path: path, volume: volume, file: file)
    }

    deinit { if isOpen { volume.close(file) } }

    /// The open file, which the caller closes in place of the writer; `nil` if it is closed.
    mutating func takeOpenFile() -> OpenFile? {
        defer { isOpen = false }
        return isOpen ? file : nil
    }

    /// The most space that the complete file occupies if `count` more bytes are appended.
    func fileBytesMax(adding count: Int) -> Int {
        let rows = blocks.count + BodyCodec.blockCount(pending.count + count)
        let bytes = position + pending.count + rows * BodyFileFormat.Block.sizeBytes
        // Whole pages count at the end: those before the bytes may have no room for them.
        if Mutant.roundsBeforeAdding.isOn { return DiskLedger.bodyFileBytes(bytes) + count }
        return DiskLedger.bodyFileBytes(bytes + count)
    }

    mutating func append(_ bytes: ByteChunk) throws(FileFault) {
        var offset = 0
        while offset < bytes.count {
            let count = min(bytes.count - offset, BodyCodec.blockBytes - pending.count)
            bytes[offset..<offset + count].withUnsafeBytes { pending.append(contentsOf: $0) }
            rawCount += count
            offset += count
            if pending.count == BodyCodec.blockBytes { try writeBlock() }
        }
        assert(pending.count < BodyCodec.blockBytes, "a full block is written at once")
        assert(
            rawCount == blocks.count * BodyCodec.blockBytes + pending.count,
            "the blocks and the rest are the whole"
        )
    }

    /// Returns the bytes at `range` up to the end of the first block; written blocks are read back.
    mutating func read(_ range: Range<Int>) throws(FileFault) -> ByteChunk? {
        precondition(range.upperBound <= rawCount)
        guard !range.isEmpty else { return .empty }
        let block = range.lowerBound / BodyCodec.blockBytes
        let start = block * BodyCodec.blockBytes
        let end = min(range.upperBound, start + BodyCodec.blockBytes)
        let part = range.lowerBound - start..<end - start
        guard block < blocks.count else {
            return pending.withUnsafeBytes { ByteChunk(copying: .init(rebasing: $0[part])) }
        }
        let whole = try BodyBlocks.read(
            block,
            of: blocks,
            rawCount: rawCount,
            fileID: fileID,
            from: file,
            volume
        )
        return whole?[part]
    }

    /// Writes the remaining bytes and the table, and returns the reference to the file.
    mutating func finish(_ durability: DiskConfiguration.Durability) throws(FileFault)
        -> BodyReference
    {
        if !pending.isEmpty { try writeBlock() }
        assert(blocks.count == BodyCodec.blockCount(rawCount), "a row for each block")
        assert(blocks.last?.end ?? position == position, "the table follows the blocks")
        var table = [UInt8](repeating: 0, count: blocks.count * BodyFileFormat.Block.sizeBytes)
        table.withUnsafeMutableBytes { bytes in
            for (row, block) in blocks.enumerated() {
                block.encode(into: bytes, at: row * BodyFileFormat.Block.sizeBytes)
            }
        }
        try Self.write(table[...], to: file, at: position, on: volume)
        if durability != .none {
            try volume.synchronize(file)
            try volume.synchronizeDirectory(
                String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
            )
        }
        isOpen = false
        volume.close(file)
        return BodyReference(
            fileID: fileID,
            rawCount: rawCount,
            fileBytes: position + table.count,
            tableOffset: position,
            blockCount: blocks.count,
            tableCRC: table.withUnsafeBytes { $0.crc32c(from: BodyFileFormat.seed(fileID)) }
        )
    }

    /// Closes the file of a body that is given up; the caller unlinks it.
    mutating func close() { if let open = takeOpenFile() { volume.close(open) } }

    private mutating func writeBlock() throws(FileFault) {
        let limit = pending.count / 10 * 9
        if scratch.count < limit { scratch = [UInt8](repeating: 0, count: limit) }
        let count = pending.withUnsafeBytes { raw in
            scratch.withUnsafeMutableBytes { scratch in
                BodyCodec.compressBlock(raw, into: .init(rebasing: scratch[..<limit]))
            }
        }
        let stored = count.map { scratch[..<$0] } ?? pending[...]
        assert(
            count == nil
                || pending.withUnsafeBytes { raw in
                    stored.withUnsafeBytes { BodyCodec.isReadable($0, .lz4, as: raw) }
                },
            "reads as written"
        )
        let crc = stored.withUnsafeBytes { $0.crc32c(from: BodyFileFormat.seed(fileID)) }
        try Self.write(stored, to: file, at: position, on: volume)
        assert(stored.count <= BodyCodec.blockBytes && !stored.isEmpty)
        position += stored.count
        blocks.append(.init(end: position, isRaw: count == nil, crc: crc))
        pending.removeAll(keepingCapacity: true)
    }

    private static func write(
        _ bytes: ArraySlice<UInt8>,
        to file: OpenFile,
        at offset: Int,
        on volume: Volume
    ) throws(FileFault) {
        let fault = bytes.withUnsafeBytes { bytes -> FileFault? in
            do throws(FileFault) {
                try volume.write(file, from: bytes, at: offset)
                return nil
            } catch { return error }
        }
        if let fault { throw fault }
    }
}
