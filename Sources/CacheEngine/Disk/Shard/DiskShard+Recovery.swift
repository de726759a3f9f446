import Synchronization

extension DiskShard {
    /// A segment found at opening.
    private struct FoundSegment {
        let slot: Int
        let file: OpenFile
        let header: SegmentHeader
    }

    /// The results of replaying the log so far.
    struct Replay {
        var report = RecoveryReport()
        var sequenceMax: UInt64 = 0
        var generationMax: UInt64 = 0
        /// The newest segment, if more records may be appended to it.
        var appendable: LogWriter.OpenSegment?
        /// A read error: the device did not return all data, so removals may be missing.
        var fault: FileFault?
        /// The slots of files that this process may not open.
        var forbidden: [Int] = []
    }

    /// Rebuilds the index from the files, oldest segment first, and prepares the log for writing.
    func recover() throws(FileFault) -> RecoveryReport {
        var replay = Replay()
        let names = try volume.list(settings.directory)
        let found = try openSegments(names, &replay)
        let newest = found.last
        for segment in found {
            let isNewest = segment.slot == newest?.slot
            try self.replay(segment, isNewest: isNewest, &replay)
        }
        nextGeneration = replay.generationMax &+ 1
        let sequence = replay.sequenceMax &+ 1
        state.withLock { $0.nextSequence = max($0.nextSequence, sequence) }
        adoptBodies(names, &replay)
        if let fault = replay.fault {
            distrustEverything(fault, &replay)
            // A header that could not be read may have a larger number and be readable at the next
            // opening.
            replay.appendable = nil
            nextGeneration += 1 << 32
        }
        endSession()
        continueLog(replay.appendable)
        // Without this, the same bad block would empty the shard at every opening.
        if replay.fault != nil {
            while reclaimPurgedSegment() {}
            unlink(replay.forbidden)
        }
        // Files that cannot be unlinked stay, and so does what is in the others.
        try? shrinkLog()
        while ledger.balance.freeBytes < 0, (try? makeRoom() || removeCleanSegment()) == true {}
        replay.report.entries = state.withLock { $0.index.count }
        assert(
            ledger.balance.segmentBytes >= segmentCount * settings.segmentBytes,
            "each segment has its room"
        )
        return replay.report
    }

    /// Gives up segments, the oldest first, until the log has no more files than it may.
    ///
    /// One stays clean until the end: a reclaim may need it for what it keeps.
    private func shrinkLog() throws(FileFault) {
        while ledger.balance.freeForLogBytes < 0 {
            if clean.count > 1, try removeCleanSegment() { continue }
            // Not twice in a row: two segments could take what they keep from each other for ever.
            let maySpill = !hasSpilled
            hasSpilled = false
            if reclaimOldestSegment(maySpill: maySpill) { continue }
            guard try removeCleanSegment() else { return }
        }
    }

    // MARK: Finding the segments

    /// Opens every segment file; returns those that have a valid header and are not dead, oldest
    /// first.
    private func openSegments(_ names: [String], _ replay: inout Replay) throws(FileFault)
        -> [FoundSegment]
    {
        var found: [FoundSegment] = []
        for name in names.sorted() {
            guard let slot = Self.slot(named: name) else {
                if BodyFileFormat.fileID(named: name) == nil { replay.report.damaged += 1 }
                continue
            }
            let file: OpenFile
            do throws(FileFault) {
                file = try volume.open(settings.directory + "/" + name, .existing)
            } catch {
                guard !error.isExhaustion else { throw error }
                // A link or a directory is not this cache's; any other file may have records, and
                // the only ones of removals.
                let holdsRecords = !error.namesLinkOrDirectory
                if holdsRecords, !Mutant.overlooksForbiddenFiles.isOn { replay.fault = error }
                if holdsRecords, error.isForbidden { replay.forbidden.append(slot) }
                if holdsRecords { ledger.addExisting(foreignBytes: settings.segmentBytes) }
                foreign.insert(slot)
                replay.report.damaged += 1
                continue
            }
            ledger.addExisting(segmentBytes: settings.segmentBytes)
            state.withLock { state in
                while state.segments.count <= slot { state.segments.append(SegmentInfo()) }
                state.segments[slot] = SegmentInfo(state: .clean, file: file)
            }
            switch readHeader(file, slot, &replay) {
            case .valid(let header): found.append(.init(slot: slot, file: file, header: header))
            case .blank: clean.append(slot)
            case .damaged:
                replay.report.damaged += 1
                clean.append(slot)
            }
        }
        if found.contains(where: { LogNumber.isUsedUp($0.header.numberMax) }) {
            replay.report.damaged += found.count
            try startOver(without: found)
            found = []
        }
        found.sort { $0.header.generation < $1.header.generation }
        if Mutant.replaysNewestFirst.isOn { found.reverse() }
        var oldest: UInt64 = 0
        for segment in found {
            let header = segment.header
            oldest = max(oldest, header.oldestGeneration)
            replay.generationMax = max(replay.generationMax, header.generation)
            replay.sequenceMax = max(replay.sequenceMax, max(1, header.firstSequence) - 1)
        }
        let isLive = { (found: FoundSegment) in
            !found.header.isRetired && found.header.generation >= oldest
        }
        clean += found.filter { !isLive($0) }.map(\.slot)
        if let fault = confirmClean() { replay.fault = fault }
        return found.filter(isLive)
    }

    /// Unlinks every segment, so that the numbers of the shard begin again.
    ///
    /// The largest numbers go last: after a kill in between, the next opening does the same.
    private func startOver(without found: [FoundSegment]) throws(FileFault) {
        clean += found.sorted { $0.header.numberMax < $1.header.numberMax }.map(\.slot)
        while try removeCleanSegment() {}
        // A segment that stays would be newer than those that are written with smaller numbers.
        guard clean.isEmpty else { throw .inputOutput }
    }

    /// Unlinks segments that this process may not open, so that only one opening begins empty for
    /// them.
    ///
    /// They may have removals of records in the other segments, which are retired before.
    private func unlink(_ forbidden: [Int]) {
        guard order.isEmpty else { return }
        for slot in forbidden where (try? volume.unlink(segmentPath(slot))) != nil {
            foreign.remove(slot)
            ledger.releaseForeign(settings.segmentBytes)
        }
    }

    static func slot(named name: String) -> Int? {
        guard let slot = Int(name.prefix(5)), (0..<RecordPlace.segmentsMax).contains(slot),
            segmentName(slot) == name
        else { return nil }
        return slot
    }

    static func segmentName(_ slot: Int) -> String {
        let digits = String(slot)
        return String(repeating: "0", count: 5 - digits.count) + digits + ".seg"
    }

    private enum FoundHeader {
        case valid(SegmentHeader)
        /// Allocated, but never used.
        case blank
        case damaged
    }

    private func readHeader(
        _ file: OpenFile,
        _ slot: Int,
        _ replay: inout Replay
    ) -> FoundHeader {
        withUnsafeTemporaryAllocation(byteCount: SegmentHeader.sizeBytes, alignment: 16) { page in
            var count = 0
            do throws(FileFault) { count = try volume.read(file, into: page, at: 0) } catch {
                replay.fault = error
            }
            guard count == page.count else { return .damaged }
            guard let header = SegmentHeader(decoding: UnsafeRawBufferPointer(page)),
                header.storeID == settings.storeID, header.shard == settings.number,
                header.slot == slot, header.hasSoundOldest
            else { return page.allSatisfy { $0 == 0 } ? .blank : .damaged }
            return .valid(header)
        }
    }

    // MARK: Replaying one segment

    private func replay(
        _ segment: FoundSegment,
        isNewest: Bool,
        _ replay: inout Replay
    ) throws(FileFault) {
        enter(segment)
        var items: [FooterItem] = []
        var end = SegmentHeader.sizeBytes
        let trailer = readTrailer(of: segment)
        if let trailer, let footer = readFooter(trailer, of: segment) {
            items = footer
            end = trailer.recordsEnd
            apply(footer, of: segment, recordsEnd: end, &replay)
        }
        // After a valid trailer only the records appended since are scanned; otherwise all of them.
        let isSealed = !items.isEmpty || trailer?.itemCount == 0
        var isTorn = trailer?.isTorn ?? true
        let scanLimit = SegmentTrailer.footerOffset(
            itemCount: items.count,
            segmentBytes: settings.segmentBytes
        )
        if !isSealed || !isTorn {
            let found = scan(segment, from: end, to: scanLimit)
            apply(found.items, of: segment, recordsEnd: found.end, &replay)
            replay.report.damaged += found.damagedCount
            if !isSealed || found.end > end { isTorn = true }
            items += found.items
            end = found.end
            if let fault = found.fault {
                // The segment stays unsealed: another opening may be able to read the rest.
                replay.fault = fault
                return
            }
        }
        // Used-up numbers must reach a header, by which the next opening starts over.
        let mayContinue = isNewest && !isTorn && !LogNumber.isUsedUp(replay.sequenceMax)
        let isFollowed = mayContinue && hasRecords(segment, behind: end, to: scanLimit)
        let known = LogWriter.OpenSegment(
            slot: segment.slot,
            header: segment.header,
            seal: segment.header.seal,
            file: segment.file,
            position: end,
            items: items,
            // The run that wrote it may not have synchronised it.
            isSynchronized: Mutant.believesTheLastLife.isOn
        )
        if !isSealed || trailer?.recordsEnd != end || isFollowed {
            replay.report.torn += 1
            sealAgain(known)
        } else if mayContinue {
            replay.appendable = known
        } else {
            confirm(known)
        }
    }

    /// Enters the segment without its records.
    private func enter(_ segment: FoundSegment) {
        state.withLock { state in
            state.segments[segment.slot] = SegmentInfo(
                state: .sealed,
                file: segment.file,
                seal: segment.header.seal,
                generation: segment.header.generation,
                recordsEnd: SegmentHeader.sizeBytes
            )
        }
        order.append(segment.slot)
    }

    private func readTrailer(of segment: FoundSegment) -> SegmentTrailer? {
        let offset = settings.segmentBytes - SegmentTrailer.sizeBytes
        return withUnsafeTemporaryAllocation(byteCount: SegmentTrailer.sizeBytes, alignment: 16) {
            page in
            let count = (try? volume.read(segment.file, into: page, at: offset)) ?? 0
            guard count == page.count else { return nil }
            let trailer = SegmentTrailer(
                decoding: UnsafeRawBufferPointer(page),
                of: segment.header,
                segmentBytes: settings.segmentBytes
            )
            guard let trailer, LogNumber.isSound(trailer.sequenceMax) else { return nil }
            return trailer
        }
    }

    private func readFooter(_ trailer: SegmentTrailer, of segment: FoundSegment) -> [FooterItem]? {
        let count = trailer.itemCount * FooterItem.sizeBytes
        let footer = ByteChunk(capacity: count) { buffer in
            try? volume.read(segment.file, into: buffer, at: trailer.footerOffset)
        }
        guard let footer, footer.count == count else { return nil }
        return footer.withUnsafeBytes { bytes in
            guard bytes.crc32c() == trailer.footerCRC else { return nil }
            let items = (0..<trailer.itemCount).map { number in
                FooterItem(
                    trusted: bytes,
                    at: number * FooterItem.sizeBytes,
                    sequenceMin: trailer.sequenceMin
                )
            }
            guard items.allSatisfy({ $0.sequence <= trailer.sequenceMax }) else { return nil }
            return items
        }
    }

    /// Whether the segment has a record farther behind its end than a scan looks.
    ///
    /// A power cut may lose what an earlier life has appended, except its last batch. Appended records
    /// would join that batch to the log again, with its entries that were removed meanwhile.
    private func hasRecords(_ segment: FoundSegment, behind end: Int, to limit: Int) -> Bool {
        if Mutant.continuesUnseen.isOn { return false }
        let start = end + settings.recordBytesMax + recordUnitBytes
        let reach = settings.segmentBytes
        let found = scan(segment, from: start, to: limit, reach: reach)
        return !found.items.isEmpty || found.fault != nil
    }

    private func scan(
        _ segment: FoundSegment,
        from start: Int,
        to limit: Int,
        reach: Int? = nil
    ) -> SegmentScanner.Findings {
        var scanner = SegmentScanner(
            volume: volume,
            file: segment.file,
            seal: segment.header.seal,
            limit: limit,
            reach: reach ?? settings.recordBytesMax
        )
        var found = scanner.scan(from: start)
        if Mutant.forgetsTheTail.isOn { found.items = [] }
        // Writing continues at a page boundary.
        found.end = min(limit, (found.end + pageBytes - 1) & ~(pageBytes - 1))
        return found
    }

    /// Seals a segment that was cut off, so that the next opening need not scan it.
    private func sealAgain(_ segment: LogWriter.OpenSegment) {
        let room = SegmentTrailer.footerOffset(
            itemCount: segment.items.count,
            segmentBytes: settings.segmentBytes
        )
        guard segment.position <= room else { return }
        if writeTrailer(of: segment, isTorn: true) == 0 { doubt(segment) }
    }

    /// Replays the items in the order in which they were written.
    private func apply(
        _ items: [FooterItem],
        of segment: FoundSegment,
        recordsEnd: Int,
        _ replay: inout Replay
    ) {
        guard !items.isEmpty else { return }
        let purges = items.filter { $0.flags.contains(.purgeRecord) }
            .map { readPurge($0, of: segment, &replay) }
        var nextPurge = 0
        let (sequenceMax, damagedCount) = state.withLock { state in
            var damagedCount = 0
            state.segments[segment.slot].recordsEnd = recordsEnd
            for item in items {
                state.noteRecord(item.flags, item.sequence, in: segment.slot)
                if Mutant.ignoresTombstones.isOn, item.flags.contains(.tombstone) { continue }
                if Mutant.ignoresPurgeRecords.isOn, item.flags.contains(.purgeRecord) { continue }
                if item.flags.contains(.purgeRecord) {
                    state.replay(purges[nextPurge], sequence: item.sequence)
                    nextPurge += 1
                } else if item.flags.contains(.tombstone) {
                    _ = state.index.remove(item.hash.identity)
                } else if item.isInside(recordsEnd: recordsEnd) || Mutant.believesEveryPlace.isOn {
                    let place = RecordPlace(
                        segment: segment.slot,
                        offset: item.offset,
                        recordBytes: item.recordBytes,
                        flags: .init(item.flags, isRaw: item.isRaw)
                    )
                    _ = state.index.set(item.hash.identity, to: place)
                } else {
                    // The key's older records are not the newest, as behind an unreadable record.
                    damagedCount += 1
                    _ = state.index.remove(item.hash.identity)
                }
            }
            return (state.segments[segment.slot].sequenceMax, damagedCount)
        }
        replay.report.damaged += damagedCount
        replay.sequenceMax = max(replay.sequenceMax, sequenceMax)
    }

    /// Reads a purge record; an unreadable one counts as the removal of everything.
    private func readPurge(
        _ item: FooterItem,
        of segment: FoundSegment,
        _ replay: inout Replay
    ) -> PurgeRecord {
        var fault: FileFault?
        let bytes = ByteChunk(capacity: item.recordBytes) { buffer in
            do throws(FileFault) {
                return try volume.read(segment.file, into: buffer, at: item.offset)
            } catch {
                fault = error
                return nil
            }
        }
        if let fault { replay.fault = fault }
        let read = bytes?.withUnsafeBytes { bytes -> PurgeRecord? in
            let seal = segment.header.seal
            guard
                let record = CheckedRecord(bytes, at: item.offset, sealedBy: seal),
                record.hasWholeBody
            else { return nil }
            return PurgeRecord(decoding: record.storedBody)
        }
        if let read { return read }
        replay.report.damaged += 1
        return .removal(.everything)
    }
}
