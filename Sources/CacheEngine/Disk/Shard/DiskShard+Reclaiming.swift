import Synchronization

extension DiskShard {
    /// The divisor for the share of a segment that may be written again because it was used: 1/4.
    private static let reinsertionDivisor = 4
    /// The divisor for the share that may be kept because it is pinned: 1/2.
    ///
    /// It applies to a segment and, for pinned bodies, to the capacity.
    static let pinnedDivisor = 2
    private static let reinsertionBytesMax = 1 << 20
    private struct Kept: Sendable {
        let identity: UInt64
        let place: RecordPlace
    }

    /// Whether the open segment has room for all records that may be kept of another segment.
    var hasRoomForKept: Bool {
        let share = settings.segmentBytes / Self.reinsertionDivisor
        return hasRoom(share + settings.segmentBytes / Self.pinnedDivisor)
    }

    /// Empties the oldest segment: records in use and pinned records are written again, the others
    /// are dropped.
    ///
    /// It must be the oldest segment: a tombstone must not be dropped before the records that it
    /// removes. With `maySpill`, records for which the open segment has no room are written to a
    /// clean one. A segment whose header cannot be written is unlinked. Returns `false` if there is no
    /// segment or the device failed.
    func reclaimOldestSegment(maySpill: Bool = false) -> Bool {
        guard mayWrite, let slot = order.first else { return false }
        let maySpill = maySpill && !Mutant.keepsWhatFits.isOn
        if Mutant.retiresBeforeItKeeps.isOn { _ = retire(slot) }
        // Before the segment is retired: a kill in between must not lose a record that is kept.
        if writer.segment != nil || maySpill {
            reinsert(entriesToKeep(in: slot), from: slot, maySpill)
        }
        let isRetired = retire(slot)
        guard isRetired || unlinkOldestSegment() else { return false }
        order.removeFirst()
        writer.doubted.removeAll { $0.slot == slot }
        forgetEntries(in: slot)
        state.withLock { state in
            assert(state.segments[slot].state == .sealed, "only a sealed segment is emptied")
            state.segments[slot].state = .clean
            state.counters.segmentsReclaimed += 1
            state.purges.forget(upTo: state.segments[slot].purgeSequenceMax)
        }
        if isRetired { clean.append(slot) } else { replaceUnlinked(slot) }
        return true
    }

    /// Empties the oldest segment if a purge of everything covers all of it; returns `false` if there
    /// is no such segment or the device failed.
    func reclaimPurgedSegment() -> Bool {
        let isPurged = state.withLock { state in
            guard let slot = order.first else { return false }
            return state.purges.coversAll(before: state.segments[slot].sequenceMax)
                || Mutant.reclaimsTheLiving.isOn
        }
        return isPurged && reclaimOldestSegment()
    }

    /// The segment's entries that are worth writing again, in the order of their records.
    ///
    /// Pinned ones; those that were read here; and of those that are in use in the memory, and
    /// therefore not read here, the ones requested most.
    private func entriesToKeep(in slot: Int) -> [Kept] {
        var worthIt: [Kept] = []
        var inMemory: [(entry: Kept, requests: Int)] = []
        var room = settings.segmentBytes / Self.reinsertionDivisor
        var pinnedRoom = settings.segmentBytes / Self.pinnedDivisor
        for table in DiskIndex.tableNumbers {
            var unread: [Kept] = []
            state.withLock { state in
                state.index.forEach(inTable: table) { slotOfIndex in
                    let place = slotOfIndex.place
                    let bytes = place.recordBytes
                    guard !place.isQueued, place.segment == slot, bytes <= Self.reinsertionBytesMax
                    else { return }
                    let entry = Kept(identity: slotOfIndex.identity, place: place)
                    if place.isPinned, bytes <= pinnedRoom {
                        pinnedRoom -= bytes
                        worthIt.append(entry)
                    } else if !state.isWorthKeeping(place, of: slotOfIndex.identity) {
                        unread.append(entry)
                    } else if bytes <= room {
                        room -= bytes
                        worthIt.append(entry)
                    }
                }
            }
            // Outside the lock, because the locks of the memory are taken before it.
            for entry in unread {
                let requests = requestsInMemory(entry.identity)
                if requests > 1 { inMemory.append((entry, requests)) }
            }
        }
        for (entry, _) in inMemory.sorted(by: { $0.requests > $1.requests })
        where entry.place.recordBytes <= room {
            room -= entry.place.recordBytes
            worthIt.append(entry)
        }
        return worthIt.sorted { $0.place.offset < $1.place.offset }
    }

    func requestsInMemory(_ identity: UInt64) -> Int {
        if Mutant.forgetsUsesInMemory.isOn { return 0 }
        return settings.requestsInMemory?(identity, settings.placements) ?? 0
    }

    /// Removes the segment's places from the index.
    private func forgetEntries(in slot: Int) {
        var dropped: [JumboFile] = []
        for table in DiskIndex.tableNumbers {
            state.withLock { state in
                var jumbos: [UInt64] = []
                state.index.removeAll(inTable: table) { entry in
                    let place = entry.place
                    guard !place.isQueued, place.segment == slot else { return false }
                    if place.flags.contains(.jumbo) { jumbos.append(entry.identity) }
                    return true
                }
                for identity in jumbos {
                    if let body = state.bodies.removeValue(forKey: identity) {
                        body.doom()
                        dropped.append(body)
                    }
                }
            }
        }
        // Files are unlinked outside the lock, because unlinking a large one takes time.
        JumboFile.release(&dropped)
    }

    private func reinsert(_ kept: [Kept], from slot: Int, _ maySpill: Bool) {
        guard !kept.isEmpty else { return }
        var maySpill = maySpill
        let (file, seal, end) = state.withLock { state in
            let info = state.segments[slot]
            return (info.file, info.seal, info.recordsEnd)
        }
        for entry in kept {
            let size = min(entry.place.recordBytes, end - entry.place.offset)
            guard size >= EntryHead.sizeBytes else { continue }
            let bytes = ByteChunk(capacity: size) { buffer in
                try? volume.read(file, into: buffer, at: entry.place.offset)
            }
            guard let bytes else { continue }
            let isPlaced = bytes.withUnsafeBytes { reinsert(entry, $0, sealedBy: seal, &maySpill) }
            guard isPlaced else { break }
            if writer.batch.count >= settings.batchBytes, !flushBatch() { break }
        }
        _ = flushBatch()
    }

    /// Places one record again; returns `false` if no more records can be placed.
    private func reinsert(
        _ entry: Kept,
        _ bytes: UnsafeRawBufferPointer,
        sealedBy seal: SegmentSeal,
        _ maySpill: inout Bool
    ) -> Bool {
        guard let record = CheckedRecord(bytes, at: entry.place.offset, sealedBy: seal),
            record.hasWholeBody, record.head.hash.identity == entry.identity
        else { return true }
        // Under the lock, while the place is still the old one: anything queued for the key later
        // is newer and is written after this record.
        let sequence = state.withLock { state -> UInt64? in
            let current = state.index.place(of: entry.identity)
            if Mutant.reinsertsUnasked.isOn { return state.takeSequence() }
            guard !current.isQueued, current.isSameLocation(as: entry.place),
                !state.isOutdated(record)
            else { return nil }
            return state.takeSequence()
        }
        guard let sequence else { return true }
        return hasRoomToKeep(record.head.recordBytes, &maySpill)
            && placeAgain(record, sequence: sequence, from: entry.place)
    }

    /// Whether there is room for a record that is kept, if need be in a clean segment.
    ///
    /// A reclaim uses the open segment and at most one clean one: it must not need the room that it
    /// frees.
    private func hasRoomToKeep(_ recordBytes: Int, _ maySpill: inout Bool) -> Bool {
        if hasRoom(recordBytes + writer.awaitedBytes) { return true }
        guard maySpill else { return false }
        maySpill = false
        guard flushBatch(), hasUnreadClean else { return false }
        sealOpenSegment(isTorn: false)
        hasSpilled = true
        return beginAnyClean() && hasRoom(recordBytes + writer.awaitedBytes)
    }
}
