import Synchronization

extension DiskShard {
    /// Clean segments kept in reserve, so that a writer never waits for a reclaim.
    private var cleanSegmentsWanted: Int {
        ledger.balance.capacityBytes / settings.segmentBytes >= 8 ? 2 : 1
    }

    /// Opens the next segment for writing; returns `false` if none is available.
    func openNextSegment() -> Bool {
        precondition(writer.segment == nil && writer.placed.isEmpty)
        // A clean segment may still have readers of its old life, which wait for the device.
        for _ in 0..<Self.segmentsTriedMax where !hasUnreadClean {
            // A reclaim keeps nothing while no segment is open.
            guard createSegment() || dropBodiesForSegment() || reclaimOldestSegment() else { break }
        }
        guard hasUnreadClean else { return false }
        var triesLeft = Self.segmentsTriedMax
        while !beginAnyClean() {
            // If only the headers of these cannot be written, that of a reclaimed one can.
            triesLeft -= 1
            guard triesLeft > 0, reclaimOldestSegment() else { return false }
        }
        while clean.count < cleanSegmentsWanted, order.count > 1 {
            guard !createSegment() else { continue }
            guard clean.isEmpty || hasRoomForKept else { break }
            guard reclaimOldestSegment(), writer.segment != nil else { break }
        }
        return writer.segment != nil
    }

    /// The segments that are made or reclaimed in search of one that can be begun.
    private static let segmentsTriedMax = 8

    /// Whether a clean segment may be begun at once.
    var hasUnreadClean: Bool { clean.contains { isUnread($0) } }

    /// Begins the first clean segment that nothing reads; returns `false` if none can be begun.
    ///
    /// If the device writes the header of one and not those before it, these go: they would take room
    /// and never be used.
    func beginAnyClean() -> Bool {
        var refused: [Int] = []
        for slot in clean where isUnread(slot) {
            guard beginClean(slot) else {
                refused.append(slot)
                continue
            }
            for other in refused where !stopIfGone() { try? removeClean(other) }
            return true
        }
        return false
    }

    /// Begins a new life of a clean segment, which stays clean if that fails.
    private func beginClean(_ slot: Int) -> Bool {
        clean.removeAll { $0 == slot }
        if begin(slot) { return true }
        clean.append(slot)
        return false
    }

    private func isUnread(_ slot: Int) -> Bool { state.withLock { $0.segments[slot].leases == 0 } }

    /// Starts a new life of a segment; no byte of the old life validates any more.
    ///
    /// A failed shard works again after that: the device has taken a write.
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
        assert(!order.contains(slot) && !clean.contains(slot), "a segment is in one list")
        nextGeneration += 1
        state.withLock { state in
            assert(state.segments[slot].leases == 0, "no reader has the old life")
            assert(state.segments[slot].state == .clean, "it holds no live record")
            state.segments[slot] = SegmentInfo(
                state: .open,
                file: file,
                seal: header.seal,
                generation: header.generation,
                recordsEnd: SegmentHeader.sizeBytes
            )
            state.counters.bytesWritten += SegmentHeader.sizeBytes
            guard state.condition == .failed, !Mutant.staysFailed.isOn else { return }
            state.condition = .working
            state.purgesEverything = false
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

    /// Writes a segment's header; returns `false` if the device failed or the shard is closed.
    ///
    /// With `.onRemoval`, the header is on the device before anything relies on it: a tombstone in
    /// the old life may be the only thing that keeps an older record dead.
    private func write(_ header: SegmentHeader, to file: OpenFile) -> Bool {
        guard mayWrite else { return false }
        let fault = withUnsafeTemporaryAllocation(byteCount: SegmentHeader.sizeBytes, alignment: 16)
        { page -> FileFault? in
            header.encode(into: page)
            do throws(FileFault) {
                if try volume.size(file) < settings.segmentBytes {
                    try volume.preallocate(file, bytes: settings.segmentBytes)
                }
                try volume.write(file, from: UnsafeRawBufferPointer(page), at: 0)
                if settings.durability == .onRemoval { try volume.synchronize(file) }
                return nil
            } catch { return error }
        }
        if let fault { noteWriteError(fault) }
        return fault == nil
    }

    /// Ends a segment's life on disk before its entries are forgotten.
    ///
    /// Without this, a later opening could bring back an entry whose removal found nothing to
    /// remove.
    func retire(_ slot: Int) -> Bool {
        retire(slot, oldestGeneration: state.withLock { $0.segments[slot].generation } + 1)
    }

    private func retire(_ slot: Int, oldestGeneration: UInt64) -> Bool {
        let (info, sequence) = state.withLock { ($0.segments[slot], $0.nextSequence) }
        var header = SegmentHeader(
            storeID: settings.storeID,
            shard: settings.number,
            slot: slot,
            generation: info.generation,
            nonce: 0,
            oldestGeneration: oldestGeneration,
            createdSeconds: UInt64(nowSeconds),
            firstSequence: sequence
        )
        if Mutant.retiresNothing.isOn { return true }
        header.isRetired = true
        return write(header, to: info.file)
    }

    /// Adds a new, clean segment; returns `false` if the capacity or the device does not allow one.
    func createSegment() -> Bool {
        while closeUnlinkedSegment() {}
        guard ledger.reserveSegment(settings.segmentBytes) else { return false }
        let slot = state.withLock { state in
            (0..<RecordPlace.segmentsMax).first { slot in
                let isKnown = slot < state.segments.count
                return !foreign.contains(slot)
                    && (!isKnown || state.segments[slot].state == .absent)
            }
        }
        guard let slot, let file = createSegmentFile(slot) else {
            ledger.releaseSegment(settings.segmentBytes)
            return false
        }
        state.withLock { state in
            while state.segments.count <= slot { state.segments.append(SegmentInfo()) }
            state.segments[slot] = SegmentInfo(state: .clean, file: file)
        }
        clean.append(slot)
        return true
    }

    private func createSegmentFile(_ slot: Int) -> OpenFile? {
        let path = segmentPath(slot)
        guard !stopIfGone() else { return nil }
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
            noteWriteError(error)
            return nil
        }
    }

    /// Ends the open segment with its footer and trailer.
    ///
    /// A segment that cannot be sealed stays readable and is scanned at the next opening.
    func sealOpenSegment(isTorn: Bool) {
        guard let segment = writer.segment else { return }
        writer.segment = nil
        order.append(segment.slot)
        state.withLock { $0.close(segment.slot) }
        let written = mayWrite ? writeTrailer(of: segment, isTorn: isTorn) : 0
        if written == 0 { doubt(segment) }
        if written > 0, Mutant.confirmsBySealingAnother.isOn { writer.doubted = [] }
        state.withLock { $0.counters.bytesWritten += written }
    }

    /// Remembers a closed segment whose records the device has not confirmed.
    func doubt(_ segment: LogWriter.OpenSegment) {
        guard settings.durability != .none else { return }
        var segment = segment
        segment.isDoubted = true
        writer.doubted.append(segment)
    }

    /// Seals the doubted segments; returns `false` if one of them is still doubted.
    ///
    /// Once a footer is on the device, it counts for the records that it lists: a removal holds, and
    /// an entry whose pages are lost is unreadable.
    private func sealDoubtedSegments() -> Bool {
        let doubted = writer.doubted
        if mayWrite { writer.doubted = doubted.filter { writeTrailer(of: $0, isTorn: true) == 0 } }
        if writer.segment?.isDoubted == true { sealOpenSegment(isTorn: true) }
        return writer.doubted.isEmpty
    }

    /// Writes footer and trailer and returns their size; 0 if the write failed.
    ///
    /// A failed synchronisation may have lost the header, without which the footer counts for nothing.
    func writeTrailer(of segment: LogWriter.OpenSegment, isTorn: Bool) -> Int {
        if segment.isDoubted, !Mutant.believesLostHeaders.isOn,
            !write(segment.header, to: segment.file)
        {
            return 0
        }
        let items = segment.items
        let size = settings.segmentBytes
        let start = SegmentTrailer.footerOffset(itemCount: items.count, segmentBytes: size)
        let footerBytes = items.count * FooterItem.sizeBytes
        let sequenceMin = items.map(\.sequence).min() ?? 0
        let sequenceMax = items.map(\.sequence).max() ?? 0
        // Only a forged number is so far from the others; the next opening scans the records.
        guard sequenceMax - sequenceMin <= FooterItem.distanceMax else { return 0 }
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
                sequenceMax: sequenceMax,
                isTorn: isTorn
            )
            let page = UnsafeMutableRawBufferPointer(
                rebasing: bytes[(bytes.count - SegmentTrailer.sizeBytes)...]
            )
            trailer.encode(into: page)
            assert(
                items.isEmpty
                    || SegmentTrailer(
                        decoding: UnsafeRawBufferPointer(page),
                        of: segment.header,
                        segmentBytes: size
                    ) == trailer,
                "reads as written"
            )
            do throws(FileFault) {
                try volume.write(segment.file, from: UnsafeRawBufferPointer(bytes), at: start)
                if settings.durability != .none { try volume.synchronize(segment.file) }
                return nil
            } catch { return error }
        }
        if let fault { noteWriteError(fault) }
        return fault == nil ? region.count : 0
    }

    /// Makes the written records survive a power cut; returns `false` if the device does not
    /// confirm it.
    func synchronizeOpenSegment() -> Bool {
        guard settings.durability != .none else { return true }
        // The caller may rely on records of these segments.
        guard confirmNames(), sealDoubtedSegments() else { return false }
        if let segment = writer.segment {
            guard synchronize(segment) else {
                writer.segment?.isDoubted = true
                return false
            }
            writer.segment?.isSynchronized = true
        }
        state.withLock { $0.hasUnsynchronizedRemoval = false }
        return true
    }

    // MARK: What an earlier run has written

    /// Synchronises a sealed segment of an earlier run, which may have had another durability.
    ///
    /// A removal that this run repeats may have its only record there.
    func confirm(_ segment: LogWriter.OpenSegment) {
        guard settings.durability == .onRemoval else { return }
        if !synchronize(segment) { doubt(segment) }
    }

    /// Synchronises the segments without live records, whose headers keep their older records dead;
    /// returns the last fault.
    func confirmClean() -> FileFault? {
        guard settings.durability == .onRemoval, !Mutant.believesOldHeaders.isOn else {
            return nil
        }
        var fault: FileFault?
        for slot in clean {
            let file = state.withLock { $0.segments[slot].file }
            do throws(FileFault) { try volume.synchronize(file) } catch { fault = error }
        }
        return fault
    }

    /// Synchronises the names of the files that an earlier run has created or unlinked, once, and
    /// again after a segment was unlinked with its entries; returns `false` if the device does not
    /// confirm them.
    private func confirmNames() -> Bool {
        guard settings.durability == .onRemoval, !hasConfirmedNames else { return true }
        do throws(FileFault) {
            if !Mutant.believesOldNames.isOn {
                try volume.synchronizeDirectory(settings.directory)
            }
            hasConfirmedNames = true
        } catch { noteWriteError(error) }
        return hasConfirmedNames
    }

    private func synchronize(_ segment: LogWriter.OpenSegment) -> Bool {
        if segment.isSynchronized { return true }
        do throws(FileFault) {
            if !Mutant.skipsSynchronization.isOn { try volume.synchronize(segment.file) }
            return true
        } catch {
            noteWriteError(error)
            return false
        }
    }

    /// Stops writing to the open segment; its records stay readable.
    ///
    /// One without records is clean again: a device that takes headers and no batch must not use up
    /// one segment at each attempt. It is retired, because a part of the batch may be valid.
    func abandonOpenSegment() {
        guard let segment = writer.segment else { return }
        writer.segment = nil
        let oldest = segment.header.oldestGeneration
        if segment.items.isEmpty, !Mutant.abandonsEmptySegments.isOn,
            retire(segment.slot, oldestGeneration: oldest)
        {
            state.withLock { $0.segments[segment.slot].state = .clean }
            clean.append(segment.slot)
            return
        }
        order.append(segment.slot)
        state.withLock { $0.close(segment.slot) }
        if segment.isDoubted || settings.durability != .none && !synchronize(segment) {
            doubt(segment)
        }
    }

    /// Unlinks the file of a clean segment; returns `false` if every clean segment has a reader.
    func removeCleanSegment() throws(FileFault) -> Bool {
        guard !stopIfGone(), let slot = clean.first(where: { isUnread($0) }) else { return false }
        try removeClean(slot)
        return true
    }

    private func removeClean(_ slot: Int) throws(FileFault) {
        try unlink(segmentPath(slot))
        clean.removeAll { $0 == slot }
        closeUnlinked(slot)
    }

    /// Closes a segment whose file is unlinked, and releases its room.
    private func closeUnlinked(_ slot: Int) {
        let file = state.withLock { state in
            let info = state.segments[slot]
            assert(info.state == .clean && info.leases == 0, "nothing is read from it")
            state.segments[slot] = SegmentInfo()
            return info.file
        }
        volume.close(file)
        ledger.releaseSegment(settings.segmentBytes)
    }

    /// Unlinks a file that may be gone already.
    nonisolated func unlink(_ path: String) throws(FileFault) {
        do throws(FileFault) { try volume.unlink(path) } catch {
            guard error != .notFound, !Mutant.believesEveryUnlink.isOn else { return }
            noteWriteError(error)
            throw error
        }
    }

    // MARK: A header that cannot be written

    /// Unlinks the oldest segment, which cannot be retired; returns `false` if that does not help.
    ///
    /// Without this, one bad page would stop the log for ever. A file that is gone restores no more
    /// entries than a retired one, and the headers of later segments have its numbers. If the device
    /// writes no other page of the file either, it is the device that fails: it may work again.
    func unlinkOldestSegment() -> Bool {
        guard let slot = order.first, order.count > 1 || writer.segment != nil,
            !Mutant.keepsUnwritableSegments.isOn
        else { return false }
        let file = state.withLock { $0.segments[slot].file }
        guard takesWrites(file), !stopIfGone(), (try? unlink(segmentPath(slot))) != nil else {
            return false
        }
        // Until the device has confirmed that the name is gone, each removal asks it to: the file may
        // have an entry of the same key.
        hasConfirmedNames = false
        if !confirmNames() { state.withLock { $0.hasUnsynchronizedRemoval = true } }
        return true
    }

    /// Whether the device writes the last page of the file, which gets the bytes that it has.
    private func takesWrites(_ file: OpenFile) -> Bool {
        let offset = settings.segmentBytes - pageBytes
        return withUnsafeTemporaryAllocation(byteCount: pageBytes, alignment: 16) { page in
            do throws(FileFault) {
                guard try volume.read(file, into: page, at: offset) == page.count else {
                    return false
                }
                try volume.write(file, from: UnsafeRawBufferPointer(page), at: offset)
                if settings.durability == .onRemoval { try volume.synchronize(file) }
                return true
            } catch { return false }
        }
    }

    /// Puts a new file in the place of the oldest segment, which is unlinked and was left by its
    /// entries.
    ///
    /// While it has readers it keeps its room, and there is no new file.
    func replaceUnlinked(_ slot: Int) {
        unlinked.append(slot)
        _ = createSegment()
    }

    /// Closes an unlinked segment without readers; returns `false` if each still has some.
    func closeUnlinkedSegment() -> Bool {
        guard let position = unlinked.firstIndex(where: { isUnread($0) }) else { return false }
        closeUnlinked(unlinked.remove(at: position))
        return true
    }
}

extension ShardState {
    /// Ends the writing of the open segment; its records stay readable.
    fileprivate mutating func close(_ slot: Int) {
        assert(segments[slot].state == .open, "only the open segment is closed")
        segments[slot].state = .sealed
    }
}
