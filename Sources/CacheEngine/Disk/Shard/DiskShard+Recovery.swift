import Synchronization

extension DiskShard {
    /// A segment found at opening.
    private struct FoundSegment {
        let slot: Int
        let file: OpenFile
        let header: SegmentHeader
    }

    /// What replaying the log has learnt so far.
    private struct Replay {
        var report = RecoveryReport()
        var sequenceMax: UInt64 = 0
        var generationMax: UInt64 = 0
        /// The newest segment, when more may be appended to it.
        var appendable: LogWriter.OpenSegment?
    }

    /// Rebuilds the index from the files, oldest segment first, and makes the log ready to go on.
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
        endSession()
        continueLog(replay.appendable)
        while ledger.balance.freeBytes < 0, makeRoom() {}
        let now = nowSeconds
        let base = settings.baseSeconds
        state.withLock { state in
            replay.report.entries = state.index.count
            state.index.forEach { slot in
                guard slot.place.expiry.isPast(nowSeconds: now, baseSeconds: base) else { return }
                replay.report.expired += 1
            }
        }
        return replay.report
    }

    // MARK: Finding the segments

    /// Opens every segment file; gives those with a valid header that are not dead, oldest first.
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
                // A link, a directory, something without permission: not ours, left alone.
                guard error != .tooManyFiles else { throw error }
                replay.report.damaged += 1
                continue
            }
            ledger.addExisting(segmentBytes: settings.segmentBytes)
            state.withLock { state in
                while state.segments.count <= slot { state.segments.append(SegmentInfo()) }
                state.segments[slot] = SegmentInfo(state: .clean, file: file)
            }
            switch readHeader(file, slot) {
            case .valid(let header): found.append(.init(slot: slot, file: file, header: header))
            case .blank: clean.append(slot)
            case .damaged:
                replay.report.damaged += 1
                clean.append(slot)
            }
        }
        found.sort { $0.header.generation < $1.header.generation }
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
        return found.filter(isLive)
    }

    private static func slot(named name: String) -> Int? {
        guard name.hasSuffix(".seg"), name.utf8.count == 9, let slot = Int(name.prefix(5)),
            (0..<RecordPlace.segmentsMax).contains(slot)
        else { return nil }
        return slot
    }

    private enum FoundHeader {
        case valid(SegmentHeader)
        /// Given its room, never used.
        case blank
        case damaged
    }

    private func readHeader(_ file: OpenFile, _ slot: Int) -> FoundHeader {
        withUnsafeTemporaryAllocation(byteCount: SegmentHeader.sizeBytes, alignment: 16) { page in
            let count = (try? volume.read(file, into: page, at: 0)) ?? 0
            guard count == page.count else { return .damaged }
            guard let header = SegmentHeader(decoding: UnsafeRawBufferPointer(page)),
                header.storeID == settings.storeID, header.shard == settings.number,
                header.slot == slot
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
        let seal = segment.header.seal
        state.withLock { state in
            state.segments[segment.slot] = SegmentInfo(
                state: .sealed,
                file: segment.file,
                seal: seal,
                generation: segment.header.generation,
                recordsEnd: SegmentHeader.sizeBytes
            )
        }
        order.append(segment.slot)
        replay.report.segments += 1
        var items: [FooterItem] = []
        var end = SegmentHeader.sizeBytes
        let trailer = readTrailer(of: segment)
        if let trailer, let footer = readFooter(trailer, of: segment) {
            items = footer
            end = trailer.recordsEnd
            apply(footer, of: segment, recordsEnd: end, &replay)
        }
        // Behind a trailer only what was appended since; without one, everything.
        let isSealed = !items.isEmpty || trailer?.itemCount == 0
        var isTorn = trailer?.isTorn ?? true
        let scanLimit = SegmentTrailer.footerOffset(
            itemCount: items.count,
            segmentBytes: settings.segmentBytes
        )
        if !isSealed || !isTorn {
            let (tail, tailEnd) = scan(segment, from: end, to: scanLimit)
            apply(tail, of: segment, recordsEnd: tailEnd, &replay)
            if !isSealed || tailEnd > end { isTorn = true }
            items += tail
            end = tailEnd
        }
        if !isSealed || trailer?.recordsEnd != end {
            replay.report.torn += 1
            isTorn = true
            sealAgain(segment, items, end)
        }
        if isNewest, !isTorn {
            replay.appendable = .init(
                slot: segment.slot,
                header: segment.header,
                seal: seal,
                file: segment.file,
                position: end,
                items: items
            )
        }
    }

    private func readTrailer(of segment: FoundSegment) -> SegmentTrailer? {
        let offset = settings.segmentBytes - SegmentTrailer.sizeBytes
        return withUnsafeTemporaryAllocation(byteCount: SegmentTrailer.sizeBytes, alignment: 16) {
            page in
            let count = (try? volume.read(segment.file, into: page, at: offset)) ?? 0
            guard count == page.count else { return nil }
            return SegmentTrailer(
                decoding: UnsafeRawBufferPointer(page),
                of: segment.header,
                segmentBytes: settings.segmentBytes
            )
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
            return (0..<trailer.itemCount).map { number in
                FooterItem(
                    trusted: bytes,
                    at: number * FooterItem.sizeBytes,
                    sequenceMin: trailer.sequenceMin
                )
            }
        }
    }

    private func scan(_ segment: FoundSegment, from start: Int, to limit: Int)
        -> (items: [FooterItem], end: Int)
    {
        var scanner = SegmentScanner(
            volume: volume,
            file: segment.file,
            seal: segment.header.seal,
            end: limit
        )
        var items: [FooterItem] = []
        let end = scanner.scan(from: start) { record, offset in
            items.append(FooterItem(record.head, offset: offset))
        }
        // Writing goes on page by page.
        return (items, min(limit, (end + pageBytes - 1) & ~(pageBytes - 1)))
    }

    /// Gives a segment that was cut off its footer, so that the next opening need not scan it.
    private func sealAgain(_ segment: FoundSegment, _ items: [FooterItem], _ end: Int) {
        let again = LogWriter.OpenSegment(
            slot: segment.slot,
            header: segment.header,
            seal: segment.header.seal,
            file: segment.file,
            position: end,
            items: items
        )
        let room = SegmentTrailer.footerOffset(
            itemCount: items.count,
            segmentBytes: settings.segmentBytes
        )
        guard end <= room else { return }
        _ = writeTrailer(of: again, isTorn: true)
    }

    /// Replays the items in the order they were written.
    private func apply(
        _ items: [FooterItem],
        of segment: FoundSegment,
        recordsEnd: Int,
        _ replay: inout Replay
    ) {
        guard !items.isEmpty else { return }
        let purges = items.filter { $0.flags.contains(.tagPurge) }
            .compactMap { item in readPurge(item, of: segment).map { (item, $0) } }
        var nextPurge = 0
        let report = state.withLock { state in
            var bytes = 0
            state.segments[segment.slot].recordsEnd = recordsEnd
            for item in items {
                state.noteRecord(item.flags, item.sequence, in: segment.slot)
                bytes += item.recordBytes
                if item.flags.contains(.tagPurge) {
                    guard nextPurge < purges.count, purges[nextPurge].0 == item else { continue }
                    state.replayPurge(purges[nextPurge].1, sequence: item.sequence)
                    nextPurge += 1
                } else if item.flags.contains(.tombstone) {
                    _ = state.index.remove(item.hash.identity)
                } else if item.offset + item.recordBytes <= recordsEnd {
                    let place = RecordPlace(
                        segment: segment.slot,
                        offset: item.offset,
                        recordBytes: item.recordBytes,
                        expiry: .init(
                            expiresSeconds: item.expiresSeconds,
                            baseSeconds: settings.baseSeconds
                        ),
                        flags: .init(item.flags, isRaw: item.isRaw)
                    )
                    _ = state.index.set(item.hash.identity, to: place)
                }
            }
            return (bytes, state.segments[segment.slot].sequenceMax)
        }
        replay.report.bytes += report.0
        replay.sequenceMax = max(replay.sequenceMax, report.1)
    }

    private func readPurge(_ item: FooterItem, of segment: FoundSegment) -> RemovalScope? {
        let bytes = ByteChunk(capacity: item.recordBytes) { buffer in
            try? volume.read(segment.file, into: buffer, at: item.offset)
        }
        guard let bytes else { return nil }
        return bytes.withUnsafeBytes { bytes in
            let seal = segment.header.seal
            guard
                let record = CheckedRecord(bytes, at: item.offset, sealedBy: seal),
                record.hasWholeBody
            else { return nil }
            return PurgeRecord.decode(record.storedBody)
        }
    }

    // MARK: After the log

    /// Finds the files of large bodies; an entry without its file is gone, so is a file without one.
    private func adoptBodies(_ names: [String], _ replay: inout Replay) {
        let files = Set(names.compactMap(BodyFileFormat.fileID(named:)))
        var jumbos: [(identity: UInt64, place: RecordPlace)] = []
        state.withLock { state in
            state.index.forEach { slot in
                guard slot.place.flags.contains(.jumbo) else { return }
                jumbos.append((slot.identity, slot.place))
            }
        }
        var used: Set<UInt64> = []
        for (identity, place) in jumbos {
            let known = readReference(identity, place)
            guard let (reference, sequence) = known, files.contains(reference.fileID),
                hasWholeFile(reference), used.insert(reference.fileID).inserted
            else {
                // With a tombstone: the fault may pass, a removal in between must not.
                state.withLock { state in
                    _ = state.dropCopies(of: KeyHash(placement: 0, identity: identity))
                }
                replay.report.damaged += 1
                continue
            }
            let body = makeBody(reference)
            body.note(sequence: sequence)
            ledger.addExisting(bodyBytes: body.occupiedBytes)
            replay.report.bytes += body.occupiedBytes
            state.withLock { $0.bodies[identity] = body }
        }
        for file in files.subtracting(used) {
            try? volume.unlink(settings.directory + "/" + BodyFileFormat.name(file))
        }
    }

    private func readReference(_ identity: UInt64, _ place: RecordPlace) -> (BodyReference, UInt64)?
    {
        let lease = state.withLock { state -> ReadLease? in
            guard case .onDisk(let lease) = state.lookUp(identity, nowSeconds: 0) else {
                return nil
            }
            return lease
        }
        guard let lease else { return nil }
        defer { state.withLock { $0.giveBack(lease) } }
        guard
            case .entry(_, let sequence, let reference?) =
                RecordReader(volume: volume).read(lease, .waits)
        else { return nil }
        return (reference, sequence)
    }

    private func hasWholeFile(_ reference: BodyReference) -> Bool {
        let path = settings.directory + "/" + BodyFileFormat.name(reference.fileID)
        do throws(FileFault) {
            let file = try volume.open(path, .existing)
            defer { volume.close(file) }
            return try volume.size(file) == reference.fileBytes
        } catch {
            // For want of descriptors no body is given up; a read will show what it is worth.
            return error.isExhaustion
        }
    }

    /// Entries of the last session are gone.
    private func endSession() {
        state.withLock { state in
            let scope = RemovalScope.storageClass(.session)
            if state.hasEntries(of: .session) { _ = state.purge(scope) }
        }
    }

    /// Goes on in the newest segment when nothing can lie behind its records.
    private func continueLog(_ segment: LogWriter.OpenSegment?) {
        guard let segment, order.last == segment.slot else { return }
        order.removeLast()
        state.withLock { $0.segments[segment.slot].state = .open }
        writer.segment = segment
    }
}

extension ShardState {
    func hasEntries(of kept: StorageClass) -> Bool {
        var isFound = false
        index.forEach { if $0.place.storageClass == kept { isFound = true } }
        return isFound
    }

    mutating func replayPurge(_ scope: RemovalScope, sequence: UInt64) {
        purges.insert(scope, sequence: sequence)
        switch scope {
        case .everything: index.removeAll { _ in true }
        case .storageClass(let kept): index.removeAll { $0.place.storageClass == kept }
        case .tag, .storedAfter, .storedBefore: break
        }
    }
}
