import Synchronization

extension DiskShard {
    /// Writes everything accepted before the call, and synchronizes it if the durability asks for
    /// that.
    ///
    /// `reported` is `reportedLosses` at the time of the call: a loss may concern each of the callers
    /// that flush at the same time, so all of them are told.
    func flush(reported: Int) throws {
        if isClosed { throw Self.closed }
        let isWritten = drainAll() && synchronizeOpenSegment()
        let lost = state.withLock { state in
            state.reportedLosses = state.lostEntries
            return state.lostEntries
        }
        guard isWritten, lost == reported, !stopIfGone() else {
            try checkNotGone()
            throw CacheError(
                .storageFailed,
                detail: "Entries were lost because \(settings.directory) could not be written"
            )
        }
    }

    /// Makes the queued removals survive this process, and a power cut if the durability is
    /// `.onRemoval`.
    func confirmRemovals() throws {
        if isClosed { throw Self.closed }
        let isWritten = drainAll()
        let isConfirmed = settings.durability != .onRemoval || synchronizeOpenSegment()
        guard isWritten, isConfirmed, !stopIfGone() else {
            try checkNotGone()
            throw CacheError(
                .storageFailed,
                detail: "A removal could not be written to \(settings.directory)"
            )
        }
    }

    /// Removes the entries that `scope` covers; `confirmRemovals` makes the removal durable.
    nonisolated func forgetAll(in scope: RemovalScope) throws -> RemovalCount {
        if scope == .everything { return try forgetEverything() }
        guard let sequence = state.withLock({ $0.beginPurge(scope) }) else { throw Self.closed }
        var removed = RemovalCount()
        guard case .storageClass(let kept) = scope else { return removed }
        for table in DiskIndex.tableNumbers {
            removed =
                removed
                + state.withLock { $0.dropPlaces(of: kept, inTable: table, before: sequence) }
        }
        return removed
    }

    private nonisolated func forgetEverything() throws -> RemovalCount {
        var old = DiskIndex()
        guard var removed = state.withLock({ $0.purgeEverything(leaving: &old) }) else {
            throw Self.closed
        }
        old.forEach { if !$0.place.isQueued { removed.bytes += $0.place.recordBytes } }
        return removed
    }

    /// Makes the accepted entries and removals survive this process.
    func writeOut() throws {
        if isClosed { throw Self.closed }
        guard drainAll(), !stopIfGone() else {
            try checkNotGone()
            throw CacheError(
                .storageFailed,
                detail: "Stored entries could not be written to \(settings.directory)"
            )
        }
    }

    /// Changes the capacity for what is stored from now on; `shrink` makes the files fit.
    nonisolated func setCapacity(_ bytes: Int, entryBytesMax: Int) {
        ledger.setCapacity(bytes)
        state.withLock {
            $0.entryBytesMax = entryBytesMax
            $0.hasCapacity = bytes >= settings.segmentBytes
        }
    }

    /// Takes one step of making the files fit the capacity: frees a segment or a body.
    ///
    /// A step that frees nothing is taken only while there are fewer bodies than `bodiesMax`. Returns
    /// `bodiesMax` of the next step; `nil` after the last step.
    func shrink(bodiesMax: Int) throws -> Int? {
        if isClosed { throw Self.closed }
        do throws(FileFault) { return try shrinkOnce(bodiesMax: bodiesMax) } catch {
            try checkNotGone()
            throw CacheError(
                .storageFailed,
                detail: "The new capacity was not reached because \(settings.directory) "
                    + "could not be written"
            )
        }
    }

    private func shrinkOnce(bodiesMax: Int) throws(FileFault) -> Int? {
        guard ledger.balance.freeBytes < 0 else { return nil }
        if try makeRoom() { return bodiesMax }
        // The dropped body may still be queued or have a reader, but the next one may be free.
        let bodies = state.withLock { $0.bodies.count }
        if bodies > 0, bodies < bodiesMax {
            _ = drainAll()
            return bodies
        }
        // Only the open segment and perhaps two more are left: release those as well.
        if try removeCleanSegment() { return bodiesMax }
        guard writer.segment != nil || !order.isEmpty else { return nil }
        _ = drainAll()
        sealOpenSegment(isTorn: false)
        while reclaimOldestSegment() { if try removeCleanSegment() { return bodiesMax } }
        guard order.isEmpty else { throw .inputOutput }
        return nil
    }

    /// Writes and seals everything; afterwards the shard accepts and writes nothing.
    func close() {
        if isClosed { return }
        for round in 1...Self.closingRoundsMax {
            let isWritten = drainAll()
            sealOpenSegment(isTorn: false)
            let isClosed = state.withLock { state in
                // Entries that arrived while the device was busy are written, too.
                guard state.queue.isEmpty || !isWritten || round == Self.closingRoundsMax else {
                    return false
                }
                state.condition = .closed
                return true
            }
            if isClosed { return }
        }
    }

    /// The number of segments in the lists.
    var segmentCount: Int { order.count + clean.count + (writer.segment == nil ? 0 : 1) }

    /// The limit of rounds: callers that keep storing must not prevent the cache from closing.
    private static let closingRoundsMax = 8

    private nonisolated var isClosed: Bool { state.withLock { $0.condition == .closed } }

    /// Whether the shard may change the files of its directory.
    ///
    /// A closed shard may not: another cache may use them by now.
    nonisolated var mayWrite: Bool { !isClosed || Mutant.writesBehindItsEnd.isOn }

    static var closed: CacheError {
        CacheError(.shutDown, detail: "The disk tier is closed")
    }

    nonisolated func noteWritten(_ bytes: Int) {
        state.withLock { $0.counters.bytesWritten += bytes }
    }

    nonisolated var statistics: DiskStatistics {
        var statistics = state.withLock { state in
            var counters = state.counters
            counters.indexBytes = state.index.allocatedBytes
            counters.indexEntries = state.index.count
            counters.queuedBytes = state.queue.bytes
            let isFailed = state.condition == .failed || state.hasLostDirectory
            counters.shardsFailed = isFailed ? 1 : 0
            return counters
        }
        statistics.fileBytes = ledger.balance.usedBytes
        return statistics
    }

    #if ENGINE_CHECKS
        package func checkInvariants() {
            state.withLock { $0.checkInvariants() }
            let slots = order + clean + unlinked + (writer.segment.map { [$0.slot] } ?? [])
            precondition(Set(slots).count == slots.count, "a segment is in two lists")
            precondition(Set(writer.doubted.map(\.slot)).isSubset(of: order), "doubted, not sealed")
            let balance = ledger.balance
            precondition(balance.segmentBytes >= slots.count * settings.segmentBytes)
        }
    #endif
}

extension DiskShard {
    static var noRoomForBody: CacheError {
        CacheError(
            .storageFailed,
            detail: "The disk capacity has no room for a body of this size; raise it"
        )
    }

    /// The size of the largest entry, body included, in the present capacity.
    nonisolated var entryBytesMax: Int { state.withLock { $0.entryBytesMax } }

    /// - Throws: `.bodyTooLarge` if no entry may have a body of this size.
    nonisolated func checkBody(bytes: Int) throws(CacheError) {
        let largest = entryBytesMax
        guard bytes > largest else { return }
        throw CacheError(
            .bodyTooLarge,
            detail: "The body is larger than an entry may be: \(largest) bytes"
        )
    }

    /// Begins a body file.
    ///
    /// An announced length evicts nothing: room for the bytes is reserved as they arrive.
    func beginBody(expectedBytes: Int?) throws -> BodyWriter {
        if isClosed || stopIfGone() { throw Self.closed }
        let announced = DiskLedger.bodyFileBytesMax(rawCount: expectedBytes ?? 0)
        let reserved =
            Mutant.reservesTheAnnounced.isOn
            ? announced : DiskLedger.bodyFileBytesMax(rawCount: 0)
        guard announced <= ledger.balance.capacityBytes / 2, reserveBodyDraining(reserved) else {
            throw Self.noRoomForBody
        }
        do throws(FileFault) {
            let file = try BodyFileWriter.create(
                in: settings.directory,
                storeID: settings.storeID,
                volume
            )
            return BodyWriter(
                self,
                file,
                reservedBytes: reserved,
                fileBytesMax: DiskLedger.bodyFileBytesMax(
                    rawCount: expectedBytes ?? entryBytesMax
                )
            )
        } catch {
            ledger.releaseBody(reserved)
            throw CacheError(
                .storageFailed,
                detail: "Cannot create a file for a body in \(settings.directory): \(error.text)"
            )
        }
    }
}
