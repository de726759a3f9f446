import Platform
import Synchronization

extension DiskShard {
    /// The lane's work: writes full batches at once, and everything when the flush deadline has
    /// passed.
    func writeWhatIsDue() {
        let now = monotonicNanoseconds()
        let limit = state.withLock { state -> UInt64? in
            state.noteWriting()
            if state.condition == .closed { return nil }
            if state.condition == .failed { return now >= retryAt ? state.nextSequence : nil }
            guard state.flushDeadline != 0, now >= state.flushDeadline else { return 0 }
            state.flushDeadline = 0
            return state.nextSequence
        }
        if let limit, tryFailedDevice() { drain(below: limit) }
        let nextTry = retryAt
        perform(state.withLock { $0.wakeAfterTurn(retryAt: nextTry) })
    }

    /// Writes everything accepted before the call; returns `false` if that failed.
    ///
    /// Also the tombstones of entries that were lost on the way: they are accepted later, but until
    /// they are written the older records of those keys can come back.
    func drainAll() -> Bool {
        let start = state.withLock { state -> (limit: UInt64, lostEntries: Int)? in
            guard state.condition != .closed else { return nil }
            state.flushDeadline = 0
            return (state.nextSequence, state.lostEntries)
        }
        guard var (limit, lostEntries) = start else { return false }
        defer { requestWriting() }
        guard tryFailedDevice() else { return false }
        var hasDrained = false
        for _ in 0..<Self.failuresMax {
            let isDrained = drain(below: limit)
            let (next, lost) = state.withLock { ($0.nextSequence, $0.lostEntries) }
            // An entry that is lost in a second round was accepted after the call.
            if isDrained, lost == lostEntries || hasDrained { return true }
            hasDrained = hasDrained || isDrained
            if lost != lostEntries { (limit, lostEntries) = (next, lost) }
            if failures >= Self.failuresMax { break }
        }
        return false
    }

    /// Schedules the lane so that the queued nodes are written in time.
    nonisolated func requestWriting() { perform(state.withLock { $0.wakeAfterChange() }) }

    /// Writes every queued node below `limit`, and full batches of the nodes already queued beyond
    /// it.
    @discardableResult
    func drain(below limit: UInt64) -> Bool {
        let newest = state.withLock { $0.nextSequence }
        while true {
            let taken = state.withLock { $0.takeBatch(below: limit, orBefore: newest) }
            if taken.isEmpty { return true }
            guard write(taken) else { return false }
        }
    }

    /// Writes one batch; returns `false` if the device failed and nodes went back to the queue.
    private func write(_ taken: [WriteQueue.Taken]) -> Bool {
        for (number, node) in taken.enumerated() {
            let failedBefore = failedBatches
            if place(node) { continue }
            assert(writer.placed.isEmpty, "what was placed is written or given up")
            let rest = taken[number...].map(WriteItem.node)
            if failedBatches == failedBefore {
                fail(rest, nil)
            } else {
                // The failure is counted, and has given up the nodes before these.
                state.withLock { $0.giveUp(rest) }
            }
            return false
        }
        return flushBatch()
    }

    // MARK: Assembling a batch

    private func place(_ node: WriteQueue.Taken) -> Bool {
        switch node.content {
        case .tombstone:
            return place(node, flags: .tombstone, body: [])
        case .purge(let record):
            return place(node, flags: .purgeRecord, body: record.encoded)
        case .entry(let entry, let file):
            let head = entry.head
            var file = file
            let isTooLong =
                head.rawCount > settings.inlineBodyBytesMax
                || head.recordBytesMax > settings.recordBytesMax
            if file == nil, isTooLong {
                // Making room may write, and fail: removals before this entry must not be put back
                // while it and what follows are written.
                guard flushBatch() else { return false }
                file = writeBodyFile(of: entry)
                guard file != nil else {
                    // This entry has no room; the batch continues without it.
                    state.withLock { $0.giveUp([.node(node)]) }
                    return true
                }
            }
            return place(entry, in: file, node)
        }
    }

    private func place(_ entry: Entry, in file: JumboFile?, _ node: WriteQueue.Taken) -> Bool {
        var head = entry.head
        let tailBytes = head.entrySizeBytes - EntryHead.sizeBytes - head.rawCount
        let bodyRoom =
            file == nil
            ? BodyCodec.storedCountMax(rawCount: head.rawCount) : BodyReference.sizeBytes
        let sizeMax = EntryHead.sizeBytes + bodyRoom + tailBytes + recordUnitBytes
        guard ensureRoom(for: sizeMax) else {
            file.map { if case .entry(_, nil) = node.content { $0.doom() } }
            return false
        }
        head.sequence = node.sequence
        head.flags.remove([.tombstone, .purgeRecord, .pad, .reinserted, .jumbo])
        let room = writer.batch.room(for: sizeMax)
        let bodyRange = EntryHead.sizeBytes..<EntryHead.sizeBytes + bodyRoom
        let bodyBytes = UnsafeMutableRawBufferPointer(rebasing: room[bodyRange])
        if let file {
            head.flags.insert(.jumbo)
            head.codec = .raw
            head.storedCount = BodyReference.sizeBytes
            head.rawCount = BodyReference.sizeBytes
            file.reference.encode(into: bodyBytes)
        } else {
            entry.body.withUnsafeBytes { body in
                (head.codec, head.storedCount) = BodyCodec.compress(body, into: bodyBytes)
            }
        }
        assert(head.storedCount <= head.rawCount, "no body grows")
        assert(head.recordBytes <= settings.recordBytesMax, "a scan reaches the next record")
        entry.withBytes { bytes in
            let tail = UnsafeRawBufferPointer(rebasing: bytes[(bytes.count - tailBytes)...])
            room.copy(tail, at: EntryHead.sizeBytes + head.storedCount)
        }
        sealRecord(head, in: room, for: .node(node), body: file)
        return true
    }

    /// Places a record that is not an entry.
    private func place(_ node: WriteQueue.Taken, flags: EntryHead.Flags, body: [UInt8]) -> Bool {
        if makesNoRecord() {
            state.withLock { $0.finishWriting(node) }
            return true
        }
        let size = EntryHead.sizeBytes + body.count + recordUnitBytes
        assert(size <= settings.recordBytesMax, "one without room would be tried for ever")
        guard ensureRoom(for: size) else { return false }
        var head = EntryHead(
            hash: node.hash,
            createdSeconds: nowSeconds,
            flags: flags,
            keyCount: 0,
            tagsCount: 0,
            metadataCount: 0,
            bodyCount: body.count
        )
        head.sequence = node.sequence
        let room = writer.batch.room(for: size)
        body.withUnsafeBytes { room.copy($0, at: EntryHead.sizeBytes) }
        sealRecord(head, in: room, for: .node(node), body: nil)
        return true
    }

    /// Makes the first segment if the shard has no file; returns whether a removal needs no record,
    /// because there is no file and none can be made.
    private func makesNoRecord() -> Bool {
        segmentCount == 0 && foreign.isEmpty && !createSegment()
    }

    /// Places a record that was read from an older segment, under a new sequence number.
    func placeAgain(_ record: CheckedRecord, sequence: UInt64, from place: RecordPlace) -> Bool {
        guard ensureRoom(for: record.head.recordBytes) else { return false }
        var head = record.head
        head.sequence = sequence
        head.flags.insert(.reinserted)
        let room = writer.batch.room(for: head.recordBytes)
        room.copy(record.storedBody, at: EntryHead.sizeBytes)
        room.copy(record.tail, at: EntryHead.sizeBytes + head.storedCount)
        let item = WriteItem.reinsertion(identity: head.hash.identity, from: place)
        sealRecord(head, in: room, for: item, body: nil)
        return true
    }

    /// Completes the record in `room` with its head and checksums, and adds it to the batch.
    private func sealRecord(
        _ head: EntryHead,
        in room: UnsafeMutableRawBufferPointer,
        for item: WriteItem,
        body: JumboFile?
    ) {
        guard let segment = writer.segment else { preconditionFailure("no open segment") }
        var head = head
        let offset = segment.position + writer.batch.count
        head.seal(room, at: offset, by: segment.seal)
        assert(
            CheckedRecord(.init(room), at: offset, sealedBy: segment.seal)?.hasWholeBody == true,
            "a reader of this segment accepts the record"
        )
        UnsafeMutableRawBufferPointer(rebasing: room[head.recordPartsBytes..<head.recordBytes])
            .initializeMemory(as: UInt8.self, repeating: 0)
        writer.placed.append(
            .init(item: item, head: head, batchOffset: writer.batch.count, body: body)
        )
        writer.batch.count += head.recordBytes
    }

    // MARK: Writing a batch

    /// Ensures that the open segment has room for one more record, with a new segment if necessary.
    private func ensureRoom(for recordBytes: Int) -> Bool {
        if hasRoom(recordBytes) { return true }
        guard flushBatch() else { return false }
        sealOpenSegment(isTorn: false)
        // The records that a reclaim keeps end with a page, and the record begins a batch of its own
        // and may add a page to the footer.
        let awaited = recordBytes + BatchList.recordBytes(itemCount: 1) + 2 * pageBytes
        writer.awaitedBytes = Mutant.awaitsNoRecord.isOn ? 0 : awaited
        defer { writer.awaitedBytes = 0 }
        return openNextSegment() && hasRoom(recordBytes)
    }

    /// Whether the open segment has room for so many more bytes.
    func hasRoom(_ recordBytes: Int) -> Bool {
        writer.hasRoom(recordBytes: recordBytes, segmentBytes: settings.segmentBytes)
    }

    /// Writes the batch to the open segment and makes its records the newest copies.
    func flushBatch() -> Bool {
        guard !writer.placed.isEmpty, var segment = writer.segment else { return true }
        guard mayWrite else {
            fail(writer.placed.map(\.item), nil)
            return false
        }
        let accepted = writer.placed.reduce(0) { $0 + ($1.isReinsertion ? 0 : $1.head.recordBytes) }
        endBatch(segment)
        do throws(FileFault) {
            let bytes = UnsafeRawBufferPointer(
                rebasing: writer.batch.bytes[..<writer.batch.count]
            )
            try volume.write(segment.file, from: bytes, at: segment.position)
        } catch {
            fail(writer.placed.map(\.item), error)
            return false
        }
        let start = segment.position
        assert(start.isMultiple(of: pageBytes), "a batch begins with a page")
        segment.items += writer.placed.map { FooterItem($0.head, offset: start + $0.batchOffset) }
        segment.position += writer.batch.count
        segment.isSynchronized = false
        assert(
            segment.position
                <= SegmentTrailer.footerOffset(
                    itemCount: segment.items.count,
                    segmentBytes: settings.segmentBytes
                ),
            "the footer has room behind the records"
        )
        writer.segment = segment
        commit(writer.placed, at: start, in: segment)
        state.withLock { state in
            state.counters.bytesWritten += segment.position - start
            state.counters.bytesAccepted += accepted
        }
        writer.placed.removeAll(keepingCapacity: true)
        writer.batch.count = 0
        failures = 0
        return true
    }

    /// Fills the batch up to a whole page with a record that lists all others of the batch.
    private func endBatch(_ segment: LogWriter.OpenSegment) {
        let least = BatchList.recordBytes(itemCount: writer.placed.count)
        let gap = least + (-(writer.batch.count + least) & (pageBytes - 1))
        var head = EntryHead(
            hash: KeyHash(placement: 0, identity: 0),
            createdSeconds: 0,
            flags: .pad,
            keyCount: 0,
            tagsCount: 0,
            metadataCount: 0,
            bodyCount: gap - EntryHead.sizeBytes
        )
        let room = writer.batch.room(for: gap)
        room.initializeMemory(as: UInt8.self, repeating: 0)
        let start = segment.position
        let items = writer.placed.map { FooterItem($0.head, offset: start + $0.batchOffset) }
        let body = UnsafeMutableRawBufferPointer(rebasing: room[EntryHead.sizeBytes..<gap])
        BatchList(start: start, items: items).encode(into: body)
        let offset = segment.position + writer.batch.count
        head.seal(room, at: offset, by: segment.seal)
        assert(
            CheckedRecord(.init(room), at: offset, sealedBy: segment.seal)?.hasWholeBody == true,
            "a scan of this segment accepts the list"
        )
        writer.batch.count += gap
        assert(writer.batch.count.isMultiple(of: pageBytes), "a batch ends with a page")
    }

    private func commit(
        _ placed: [LogWriter.Placed],
        at start: Int,
        in segment: LogWriter.OpenSegment
    ) {
        state.withLock { state in
            let info = state.segments[segment.slot]
            assert(info.state == .open && info.recordsEnd <= start, "behind the earlier records")
            state.segments[segment.slot].recordsEnd = segment.position
            for record in placed {
                assert(
                    start + record.batchOffset + record.head.recordBytes <= segment.position,
                    "a place inside the segment's records"
                )
                let place = RecordPlace(
                    segment: segment.slot,
                    offset: start + record.batchOffset,
                    recordBytes: record.head.recordBytes,
                    flags: .init(record.head.flags, isRaw: record.head.codec == .raw)
                )
                state.noteRecord(record.head.flags, record.head.sequence, in: segment.slot)
                state.settle(record, at: place)
            }
        }
    }

    // MARK: Failing

    /// Whether the device may be written; a failed one is tried with a new segment.
    private func tryFailedDevice() -> Bool {
        guard state.withLock({ $0.condition == .failed }) else { return true }
        if openNextSegment() { return true }
        retryLater()
        return makesNoRecord()
    }

    private func retryLater() {
        retryAt = monotonicNanoseconds() + Self.retryNanoseconds
        perform(.at(nanoseconds: retryAt))
    }

    /// Gives up the open segment and all pending records; the records on disk stay.
    func fail(_ items: [WriteItem], _ fault: FileFault?) {
        failures += 1
        failedBatches += 1
        let hasFailed = failures >= Self.failuresMax
        for record in writer.placed { if record.isOwnBody { record.body?.doom() } }
        writer.placed.removeAll(keepingCapacity: true)
        writer.batch.count = 0
        abandonOpenSegment()
        state.withLock { state in
            state.giveUp(items)
            if hasFailed, state.condition == .working { state.condition = .failed }
        }
        noteWriteError(fault)
        if hasFailed { retryLater() }
    }
}

extension LogWriter.Placed {
    var isReinsertion: Bool {
        if case .reinsertion = item { return true }
        return false
    }

    /// Whether the body's file was made for this record and has no other owner yet.
    var isOwnBody: Bool {
        guard case .node(let node) = item, case .entry(_, nil) = node.content else { return false }
        return body != nil
    }
}
