import Synchronization

extension DiskShard {
    /// Writes everything accepted before the call, and has the device confirm it where the
    /// durability asks for that.
    func flush() throws {
        let isWritten = drainAll() && synchronizeOpenSegment()
        let lost = state.withLock { state in
            defer { state.lostEntries = 0 }
            return state.lostEntries
        }
        guard isWritten, lost == 0 else {
            throw CacheError(.storageFailed, detail: "entries could not be written to disk")
        }
    }

    /// Makes removals that were queued survive this process, and a power cut where configured.
    func confirmRemovals() throws {
        if isClosed { throw Self.closed }
        let isWritten = drainAll()
        let isConfirmed = settings.durability != .synced || synchronizeOpenSegment()
        guard isWritten, isConfirmed else {
            throw CacheError(.storageFailed, detail: "a removal could not be written")
        }
    }

    /// Removes what `scope` covers; to be made durable by `confirmRemoval(of:)`.
    nonisolated func forgetAll(in scope: RemovalScope) throws -> RemovalCount {
        let removed = state.withLock { state in
            state.condition == .closed ? nil : state.purge(scope)
        }
        guard let removed else { throw Self.closed }
        return removed
    }

    /// Makes the removal of `scope` survive this process, and a power cut where configured.
    func confirmRemoval(of scope: RemovalScope) throws {
        try confirmRemovals()
        if scope == .everything { while reclaimOldestSegment() {} }
    }

    /// Changes the capacity; the files are small enough before it returns.
    func setCapacity(_ bytes: Int) {
        if isClosed { return }
        ledger.setCapacity(bytes)
        var bodiesLeft = Int.max
        while ledger.balance.freeBytes < 0 {
            if makeRoom() { continue }
            // The body that went may be held by a reader, or be queued still; the next may be free.
            let bodies = state.withLock { $0.bodies.count }
            if bodies > 0, bodies < bodiesLeft {
                bodiesLeft = bodies
                _ = drainAll()
                continue
            }
            // What is left is the open segment and perhaps one more: let go of those as well.
            guard writer.segment != nil || !order.isEmpty else { return }
            _ = drainAll()
            sealOpenSegment(isTorn: false)
            while reclaimOldestSegment() {}
            guard removeCleanSegment() else { return }
        }
    }

    /// Writes and seals; accepts nothing from here on, and writes nothing more.
    func close() {
        for round in 1...Self.closingRoundsMax {
            let isWritten = drainAll()
            sealOpenSegment(isTorn: false)
            let isClosed = state.withLock { state in
                // What came while the device was busy is written, too.
                guard state.queue.isEmpty || !isWritten || round == Self.closingRoundsMax else {
                    return false
                }
                state.condition = .closed
                return true
            }
            if isClosed { return }
        }
    }

    /// Who goes on storing while the cache is closed does not keep it from closing.
    private static let closingRoundsMax = 8

    private var isClosed: Bool { state.withLock { $0.condition == .closed } }

    private static var closed: CacheError {
        CacheError(.shutDown, detail: "the disk tier is closed")
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
            counters.shardsFailed = state.condition == .failed ? 1 : 0
            return counters
        }
        statistics.fileBytes = ledger.balance.usedBytes
        return statistics
    }

    #if ENGINE_CHECKS
        package func checkInvariants() {
            state.withLock { $0.checkInvariants() }
            let slots = order + clean + (writer.segment.map { [$0.slot] } ?? [])
            precondition(Set(slots).count == slots.count, "a segment is in two lists")
            let balance = ledger.balance
            precondition(balance.segmentBytes >= slots.count * settings.segmentBytes)
        }
    #endif
}

extension DiskShard {
    /// Begins a body file, with room for `expectedBytes` set aside.
    func beginBody(expectedBytes: Int?) throws -> BodyWriter {
        if isClosed { throw Self.closed }
        let expected = expectedBytes ?? 0
        let rows = BodyCodec.blockCount(expected) + 2
        let reserved = DiskLedger.bodyFileBytes(
            BodyFileFormat.headerBytes + expected + rows * BodyFileFormat.Block.sizeBytes
        )
        guard reserveBodyDraining(reserved) else {
            throw CacheError(.storageFailed, detail: "no room for the body")
        }
        do throws(FileFault) {
            let file = try BodyFileWriter.create(
                in: settings.directory,
                storeID: settings.storeID,
                volume
            )
            return BodyWriter(self, file, reservedBytes: reserved)
        } catch {
            ledger.releaseBody(reserved)
            throw CacheError(.storageFailed, detail: error.text)
        }
    }
}
