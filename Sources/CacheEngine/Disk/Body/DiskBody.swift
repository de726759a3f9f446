import Synchronization

/// A large body on disk, read block by block.
///
/// The first read opens the file, and the last reference closes it. The block read last is kept, so
/// that reading in small steps does not decompress it repeatedly.
package final class DiskBody: BodyReader {
    private struct Opened: Sendable {
        var file: OpenFile?
        var blocks: [BodyFileFormat.Block] = []
        var lastBlock: (number: Int, bytes: ByteChunk)?
    }

    package let file: JumboFile
    private let opened = Mutex(Opened())

    package init(_ file: JumboFile) { self.file = file }

    deinit {
        if let open = opened.withLock({ $0.file }) {
            file.pool.submitClosing { [volume = file.volume] in volume.close(open) }
        }
    }

    package var count: Int { file.reference.rawCount }

    package func read(_ range: Range<Int>) async throws -> ByteChunk {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        guard !range.isEmpty else { return .empty }
        let number = range.lowerBound / BodyCodec.blockBytes
        if let last = opened.withLock({ $0.lastBlock }), last.number == number {
            return Self.part(range, of: last.bytes, number)
        }
        return Self.part(range, of: try await waitForBlock(number), number)
    }

    /// Reads a block; never refused, because the head of the response has been sent.
    ///
    /// Each reader waits for one block.
    private func waitForBlock(_ number: Int) async throws -> ByteChunk {
        let watch = file.watch
        let wait = watch.makeNumber()
        let block: BlockResult = await withTaskCancellationHandler {
            await withUnsafeContinuation { reader in
                let begins = watch.begin(wait, .block(reader), isPatient: true)
                guard begins else { return reader.resume(returning: .failure(watch.late)) }
                file.pool.submitClosing { watch.end(wait, with: self.readBlock(number)) }
            }
        } onCancel: {
            watch.leave(wait)
        }
        if case .failure = block { try Task.checkCancellation() }
        return try block.get()
    }

    private static func part(_ range: Range<Int>, of block: ByteChunk, _ number: Int) -> ByteChunk {
        let start = number * BodyCodec.blockBytes
        assert((start..<start + block.count).contains(range.lowerBound), "the block has the byte")
        return block[range.lowerBound - start..<min(range.upperBound - start, block.count)]
    }

    /// Runs on the I/O pool.
    private func readBlock(_ number: Int) -> Result<ByteChunk, CacheError> {
        let known = opened.withLock { opened in opened.file.map { ($0, opened.blocks) } }
        if let (open, blocks) = known { return readBlock(number, of: blocks, from: open) }
        let fresh: OpenFile
        do throws(FileFault) {
            fresh = try file.volume.open(file.path, .reading)
        } catch {
            // Any other refusal says nothing about the file.
            if error.provesAbsence || Mutant.takesRefusedOpensForDamage.isOn { file.noteDamage() }
            return .failure(Self.unreadable(file.path, error))
        }
        return readBlock(number, ofFresh: fresh)
    }

    /// Reads the table of a file that was opened just now, and then the block.
    private func readBlock(
        _ number: Int,
        ofFresh fresh: OpenFile
    ) -> Result<ByteChunk, CacheError> {
        let table: [BodyFileFormat.Block]?
        do throws(FileFault) {
            table = try BodyBlocks.readTable(file.reference, from: fresh, file.volume)
        } catch {
            file.volume.close(fresh)
            return failure(error)
        }
        guard let table else {
            file.volume.close(fresh)
            return failure(.inputOutput)
        }
        return readBlock(number, of: table, from: keep(fresh, table))
    }

    private func readBlock(
        _ number: Int,
        of blocks: [BodyFileFormat.Block],
        from open: OpenFile
    ) -> Result<ByteChunk, CacheError> {
        do throws(FileFault) {
            let bytes = try BodyBlocks.read(
                number,
                of: blocks,
                rawCount: count,
                fileID: file.reference.fileID,
                from: open,
                file.volume
            )
            guard let bytes else {
                file.noteDamage()
                return .failure(Self.damaged(file.path))
            }
            opened.withLock { $0.lastBlock = (number, bytes) }
            return .success(bytes)
        } catch { return failure(error) }
    }

    /// The result of a read that failed in an open file.
    private func failure(_ fault: FileFault) -> Result<ByteChunk, CacheError> {
        // A lack of memory says nothing about the file.
        if !fault.isExhaustion { file.noteDamage() }
        return .failure(Self.unreadable(file.path, fault))
    }

    /// Keeps the file for later reads, and returns the one that is kept.
    ///
    /// If two first reads race, the slower one closes its file again.
    private func keep(_ fresh: OpenFile, _ table: [BodyFileFormat.Block]) -> OpenFile {
        let winner = opened.withLock { opened in
            if opened.file == nil { (opened.file, opened.blocks) = (fresh, table) }
            return opened.file ?? fresh
        }
        if winner != fresh { file.volume.close(fresh) }
        return winner
    }

    static func damaged(_ path: String) -> CacheError {
        CacheError(.storageFailed, detail: "The stored body \(path) is damaged")
    }

    static func unreadable(_ path: String, _ fault: FileFault) -> CacheError {
        CacheError(.storageFailed, detail: "Cannot read the stored body \(path): \(fault.text)")
    }
}
