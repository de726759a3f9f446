import Synchronization

/// The room of bodies in files of their own, which they share with the log.
extension DiskShard {
    /// The bodies in use that are spared before one is dropped, in use or not.
    private static let sparedInARowMax = 64

    /// Reserves `bytes` for a body, and makes room if necessary; returns `false` if that fails or the
    /// shard is closed.
    func reserveBody(_ bytes: Int) -> Bool {
        guard mayWrite, bytes <= ledger.balance.capacityBytes / 2 else { return false }
        while !ledger.reserveBody(bytes) { guard (try? makeRoom()) == true else { return false } }
        return true
    }

    /// Reserves `bytes` for a body, between batches.
    ///
    /// If everything that could be dropped is queued, the queue is written first.
    func reserveBodyDraining(_ bytes: Int) -> Bool {
        defer { requestWriting() }
        if reserveBody(bytes) { return true }
        guard state.withLock({ !$0.queue.isEmpty }), drainAll() else { return false }
        return reserveBody(bytes)
    }

    /// The clean segments that bodies leave to the log: a reclaim may need one for what it keeps.
    private var cleanSegmentsLeft: Int { Mutant.givesAwayTheLastSegment.isOn ? 0 : 1 }

    /// Frees the oldest segment or body, or spares that body because it is in use; returns `false` if
    /// it did neither, and made no segment clean.
    ///
    /// Throws if a segment, or so many bodies that the directory must be at fault, cannot be unlinked;
    /// until they can, nothing more is dropped.
    func makeRoom() throws(FileFault) -> Bool {
        if try unlinkLeftBody() { return true }
        if closeUnlinkedSegment() { return true }
        let before = ledger.balance.usedBytes
        if clean.count > cleanSegmentsLeft, try removeCleanSegment() { return true }
        let oldestBody = oldestBody()
        // Beside a body, the log keeps a sealed segment.
        let sealedLeft = oldestBody == nil && !clean.isEmpty ? 0 : 1
        if order.count > sealedLeft,
            oldestBody.map({ $0.isLast || !isOlderThanTheLog($0.body) }) ?? true
        {
            // Not twice in a row: two segments could take what they keep from each other for ever.
            let maySpill = !hasSpilled
            hasSpilled = false
            let isReclaimed = reclaimOldestSegment(maySpill: maySpill)
            if isReclaimed, clean.count <= cleanSegmentsLeft { return true }
            if isReclaimed, try removeCleanSegment() { return true }
        } else if let oldestBody {
            if spare(oldestBody.body) { return true }
            dropBody(oldestBody.body.identity)
        } else {
            return false
        }
        // A file that still has a reader is freed later, so dropping more for it would not help.
        return ledger.balance.usedBytes < before
    }

    /// Drops the oldest bodies until the capacity has room for one more segment, and creates that;
    /// returns `false` if there are too few of them.
    func dropBodiesForSegment() -> Bool {
        // With that room in the capacity, it is the device that has none.
        let balance = ledger.balance
        guard balance.freeBytes < settings.segmentBytes,
            balance.freeForLogBytes >= settings.segmentBytes, !Mutant.dropsNoBodies.isOn
        else { return false }
        while ledger.balance.freeBytes < settings.segmentBytes {
            guard let isRoomier = try? unlinkLeftBody() else { return false }
            if isRoomier { continue }
            guard let oldest = oldestBody(), !oldest.isLast else { return false }
            if spare(oldest.body) { continue }
            let before = ledger.balance.usedBytes
            dropBody(oldest.body.identity)
            // A body that is queued or has a reader is freed later.
            guard ledger.balance.usedBytes < before else { return false }
        }
        return createSegment()
    }

    private func isOlderThanTheLog(_ body: BodyLine.Element) -> Bool {
        guard let slot = order.first else { return true }
        return body.age < state.withLock { $0.segments[slot].age }
    }

    /// The body to drop next, if it is not in use: the oldest one.
    private func oldestBody() -> (body: BodyLine.Element, isLast: Bool)? {
        let pinnedBytesMax = ledger.balance.capacityBytes / Self.pinnedDivisor
        skipGoneBodies()
        if bodyLine.isUsedUp(pinnedBytesMax: pinnedBytesMax) {
            let bodies = state.withLock { state in
                state.bodies.map { identity, file in
                    BodyLine.Element(
                        identity: identity,
                        age: file.age,
                        occupiedBytes: file.occupiedBytes,
                        isPinned: state.index.place(of: identity).isPinned
                    )
                }
            }
            bodyLine.fill(with: bodies)
        }
        return bodyLine.next(pinnedBytesMax: pinnedBytesMax)
    }

    private func skipGoneBodies() {
        state.withLock { state in
            bodyLine.skip { state.bodies[$0.identity]?.age != $0.age }
        }
    }

    /// Lets the oldest body live on as the youngest if it is in use; returns `false` if it is not, or
    /// if many were spared in a row.
    ///
    /// That costs no byte on disk, so each use that was counted spares it once. The number of the log
    /// grows on, so a body that is stored later is younger.
    private func spare(_ body: BodyLine.Element) -> Bool {
        guard !body.isPinned, bodiesSparedInARow < Self.sparedInARowMax,
            !Mutant.dropsUsedBodies.isOn
        else { return false }
        // Outside the lock, because the locks of the memory are taken before it.
        let isInMemory = requestsInMemory(body.identity) > 1
        let isSpared = state.withLock { state in
            let isUsed = state.index.takeUse(of: body.identity)
            guard isUsed || isInMemory, let file = state.bodies[body.identity] else { return false }
            file.spare(at: state.nextSequence - 1)
            return true
        }
        guard isSpared else { return false }
        bodiesSparedInARow += 1
        bodyLine.noteUse()
        return true
    }

    /// Drops one body with its entry.
    private func dropBody(_ identity: UInt64) {
        bodiesSparedInARow = 0
        bodyLine.noteUse()
        var dropped = state.withLock { state -> [JumboFile] in
            let place = state.index.place(of: identity)
            // A queued body is left to the batch that writes it.
            guard !place.isQueued else { return [] }
            guard let body = state.bodies.removeValue(forKey: identity) else { return [] }
            _ = state.index.remove(identity)
            // A reader may hold the file past the end of this process.
            state.pushTombstone(KeyHash(placement: 0, identity: identity))
            state.counters.bodiesReclaimed += 1
            // Under the lock, so that a later store of the same body keeps the file.
            body.doom()
            return [body]
        }
        JumboFile.release(&dropped)
    }

    /// Unlinks a body's file and releases its room, which the file keeps if it cannot be unlinked.
    nonisolated func unlinkBody(_ path: String, releasing bytes: Int) throws(FileFault) {
        do throws(FileFault) { try unlink(path) } catch {
            state.withLock { $0.leftBodies.append((path, bytes)) }
            throw error
        }
        ledger.releaseBody(bytes)
    }

    /// The files that cannot be unlinked up to which each may be at fault itself.
    private static let leftBodiesMax = 8

    /// Tries again to unlink the file of a body; returns `false` if that freed no room.
    private func unlinkLeftBody() throws(FileFault) -> Bool {
        let (left, othersCount) = state.withLock { state in
            // The next call tries another one.
            let left = state.leftBodies.isEmpty ? nil : state.leftBodies.removeFirst()
            return (left, state.leftBodies.count)
        }
        guard let left, !stopIfGone() else { return false }
        do throws(FileFault) { try unlinkBody(left.path, releasing: left.bytes) } catch {
            if othersCount >= (Mutant.stopsAtOneBody.isOn ? 0 : Self.leftBodiesMax) { throw error }
            return false
        }
        return true
    }

    /// Writes an entry's own body to a file; `nil` if there is no room or the device fails.
    func writeBodyFile(of entry: Entry) -> JumboFile? {
        let body = entry.body
        let sizeMax = DiskLedger.bodyFileBytesMax(rawCount: body.count)
        guard !stopIfGone(), reserveBody(sizeMax) else { return nil }
        do throws(FileFault) {
            var file = try BodyFileWriter.create(
                in: settings.directory,
                storeID: settings.storeID,
                volume
            )
            do throws(FileFault) {
                try file.append(body)
                let reference = try file.finish(settings.durability)
                let used = DiskLedger.bodyFileBytes(reference.fileBytes)
                ledger.releaseBody(sizeMax - used)
                state.withLock { $0.counters.bytesWritten += used }
                return makeBody(reference)
            } catch {
                file.close()
                noteWriteError(error)
                try? unlinkBody(file.path, releasing: sizeMax)
                return nil
            }
        } catch {
            noteWriteError(error)
            ledger.releaseBody(sizeMax)
            return nil
        }
    }

    /// The file may outlive the shard, and does not keep the directory locked.
    nonisolated func makeBody(_ reference: BodyReference) -> JumboFile {
        let path = settings.directory + "/" + BodyFileFormat.name(reference.fileID)
        let bytes = DiskLedger.bodyFileBytes(reference.fileBytes)
        return JumboFile(
            reference,
            path: path,
            volume: volume,
            pool: pool,
            ledger: ledger,
            watch: watch
        ) { [weak self] in
            // Another cache may use the path by now, and a copy of the directory has the same names.
            guard let self, self.root.isInPlace || Mutant.unlinksInAnyDirectory.isOn else { return }
            try? self.unlinkBody(path, releasing: bytes)
        }
    }
}
