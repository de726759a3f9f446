import Synchronization

extension DiskShard {
    /// Clean segments kept in reserve, so that a writer never waits for a reclaim.
    private var cleanSegmentsWanted: Int {
        ledger.balance.capacityBytes / settings.segmentBytes >= 8 ? 2 : 1
    }

    /// Opens the next segment for writing; false when there is none to be had.
    func openNextSegment() -> Bool {
        precondition(writer.segment == nil && writer.placed.isEmpty)
        if clean.isEmpty, !createSegment(), !reclaimOldestSegment() { return false }
        guard let position = clean.firstIndex(where: { isUnread($0) }) else { return false }
        let slot = clean.remove(at: position)
        guard begin(slot) else {
            clean.append(slot)
            return false
        }
        state.withLock { if $0.condition == .failed { $0.condition = .working } }
        while clean.count < cleanSegmentsWanted, order.count > 1 {
            guard !createSegment() else { continue }
            guard clean.isEmpty || hasRoomForKept else { break }
            guard reclaimOldestSegment(), writer.segment != nil else { break }
        }
        return writer.segment != nil
    }

    private func isUnread(_ slot: Int) -> Bool { state.withLock { $0.segments[slot].leases == 0 } }

    /// Starts a new life of a segment: from here on, no byte of the old one validates.
    private func begin(_ slot: Int) -> Bool {
        let (file, sequence, oldest) = state.withLock { state in
            let oldest = order.first.map { state.segments[$0].generation }
            return (state.segments[slot].file, state.nextSequence, oldest)
        }
        let header = SegmentHeader(
            storeID: settings.storeID,
            shard: settings.number,
            slot: slot,
            generation: nextGeneration,
            nonce: UInt64.random(in: .min ... .max),
            oldestGeneration: oldest ?? nextGeneration,
            createdSeconds: UInt64(nowSeconds),
            firstSequence: sequence
        )
        guard write(header, to: file) else { return false }
        nextGeneration += 1
        state.withLock { state in
            state.segments[slot] = SegmentInfo(
                state: .open,
                file: file,
                seal: header.seal,
                generation: header.generation,
                recordsEnd: SegmentHeader.sizeBytes
            )
            state.counters.bytesWritten += SegmentHeader.sizeBytes
        }
        writer.segment = .init(
            slot: slot,
            header: header,
            seal: header.seal,
            file: file,
            position: SegmentHeader.sizeBytes
        )
        return true
    }

    /// Writes a segment's header; false when the device failed.
    ///
    /// Where power cuts count, it is on the device before anything relies on it: a tombstone in
    /// the old life may be all that keeps an older record dead.
    private func write(_ header: SegmentHeader, to file: OpenFile) -> Bool {
        let fault = withUnsafeTemporaryAllocation(byteCount: SegmentHeader.sizeBytes, alignment: 16)
        { page -> FileFault? in
            header.encode(into: page)
            do throws(FileFault) {
                if try volume.size(file) < settings.segmentBytes {
                    try volume.preallocate(file, bytes: settings.segmentBytes)
                }
                try volume.write(file, from: UnsafeRawBufferPointer(page), at: 0)
                if settings.durability == .synced { try volume.synchronize(file) }
                return nil
            } catch { return error }
        }
        if fault != nil { state.withLock { $0.counters.writeErrors += 1 } }
        return fault == nil
    }

    /// Ends a segment's life on disk, before its entries are forgotten: no later opening may bring
    /// back an entry whose removal found nothing to remove.
    func retire(_ slot: Int) -> Bool {
        let (info, sequence) = state.withLock { ($0.segments[slot], $0.nextSequence) }
        var header = SegmentHeader(
            storeID: settings.storeID,
            shard: settings.number,
            slot: slot,
            generation: info.generation,
            nonce: 0,
            oldestGeneration: info.generation + 1,
            createdSeconds: UInt64(nowSeconds),
            firstSequence: sequence
        )
        header.isRetired = true
        return write(header, to: info.file)
    }

    /// Adds a new, clean segment; false when the capacity or the device allows none.
    private func createSegment() -> Bool {
        guard ledger.reserveSegment(settings.segmentBytes) else { return false }
        let slot = state.withLock { state in
            (0..<state.segments.count).first { state.segments[$0].state == .absent }
                ?? state.segments.count
        }
        guard slot < RecordPlace.segmentsMax, let file = createSegmentFile(slot) else {
            ledger.releaseSegment(settings.segmentBytes)
            return false
        }
        state.withLock { state in
            let info = SegmentInfo(state: .clean, file: file)
            if slot == state.segments.count {
                state.segments.append(info)
            } else {
                state.segments[slot] = info
            }
        }
        clean.append(slot)
        return true
    }

    private func createSegmentFile(_ slot: Int) -> OpenFile? {
        let path = segmentPath(slot)
        do throws(FileFault) {
            let file = try volume.open(path, .openOrCreate)
            do throws(FileFault) {
                try volume.preallocate(file, bytes: settings.segmentBytes)
                if settings.durability != .none {
                    try volume.synchronizeDirectory(settings.directory)
                }
                return file
            } catch {
                volume.close(file)
                try? volume.unlink(path)
                throw error
            }
        } catch {
            state.withLock { $0.counters.writeErrors += 1 }
            return nil
        }
    }

    /// Ends the open segment with its footer and trailer.
    ///
    /// One that cannot be sealed stays readable, and is scanned at the next open.
    func sealOpenSegment(isTorn: Bool) {
        guard let segment = writer.segment else { return }
        writer.segment = nil
        order.append(segment.slot)
        state.withLock { $0.segments[segment.slot].state = .sealed }
        let written = writeTrailer(of: segment, isTorn: isTorn)
        state.withLock { state in
            state.counters.bytesWritten += written
            if written == 0 { state.counters.writeErrors += 1 }
        }
    }

    /// Writes footer and trailer, and gives their size; 0 when that failed.
    func writeTrailer(of segment: LogWriter.OpenSegment, isTorn: Bool) -> Int {
        let items = segment.items
        let size = settings.segmentBytes
        let start = SegmentTrailer.footerOffset(itemCount: items.count, segmentBytes: size)
        let footerBytes = items.count * FooterItem.sizeBytes
        let sequenceMin = items.map(\.sequence).min() ?? 0
        var region = [UInt8](repeating: 0, count: size - start)
        let fault = region.withUnsafeMutableBytes { bytes -> FileFault? in
            for (number, item) in items.enumerated() {
                item.encode(
                    into: bytes,
                    at: number * FooterItem.sizeBytes,
                    sequenceMin: sequenceMin
                )
            }
            let trailer = SegmentTrailer(
                generation: segment.header.generation,
                nonce: segment.header.nonce,
                itemCount: items.count,
                footerCRC: UnsafeRawBufferPointer(bytes).crc32c(upTo: footerBytes),
                footerOffset: start,
                recordsEnd: segment.position,
                sequenceMin: sequenceMin,
                sequenceMax: items.map(\.sequence).max() ?? 0,
                expiresMax: items.map(\.expiresSeconds).max() ?? 0,
                isTorn: isTorn
            )
            trailer.encode(
                into: .init(rebasing: bytes[(bytes.count - SegmentTrailer.sizeBytes)...])
            )
            do throws(FileFault) {
                try volume.write(segment.file, from: UnsafeRawBufferPointer(bytes), at: start)
                if settings.durability != .none { try volume.synchronize(segment.file) }
                return nil
            } catch { return error }
        }
        return fault == nil ? region.count : 0
    }

    /// Makes what is written survive a power cut; false when the device does not say so.
    func synchronizeOpenSegment() -> Bool {
        guard settings.durability != .none, let segment = writer.segment, !segment.isSynchronized
        else { return true }
        do throws(FileFault) {
            try volume.synchronize(segment.file)
            writer.segment?.isSynchronized = true
            return true
        } catch {
            state.withLock { $0.counters.writeErrors += 1 }
            return false
        }
    }

    /// Takes a clean segment's file away; false when there is none that nobody reads.
    func removeCleanSegment() -> Bool {
        guard let position = clean.firstIndex(where: { isUnread($0) }) else { return false }
        let slot = clean.remove(at: position)
        let file = state.withLock { state in
            let file = state.segments[slot].file
            state.segments[slot] = SegmentInfo()
            return file
        }
        volume.close(file)
        do throws(FileFault) {
            try volume.unlink(segmentPath(slot))
        } catch {
            guard error == .notFound else { return false }
        }
        ledger.releaseSegment(settings.segmentBytes)
        return true
    }
}
