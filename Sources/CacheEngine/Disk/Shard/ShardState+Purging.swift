/// Purges, hard and soft: how one is made, which record it leaves in the log, which entries it
/// covers, and how an opening repeats it.
///
///     DiskTier.removeAll ──▶ beginPurge ─┐
///     DiskTier.markStale ──▶ markStale ──┴─▶ push ──▶ DiskShard.confirmRemovals writes the log
///
/// A purge by tag looks at no entry. The table `purges` remembers it, and every read asks
/// `isPurged`. The table `stale` remembers soft ones, and `DiskTier.isMarkedStale` asks it. A record
/// that is written again asks `isOutdated` first. The next opening replays the records
/// (`DiskShard+Recovery.swift`).
extension ShardState {
    // MARK: Making

    /// Begins the removal of the entries in `scope`: readers learn of it from the table, the next
    /// process from the record.
    ///
    /// Returns the sequence number of the purge; `nil` if the shard is closed.
    mutating func beginPurge(_ scope: RemovalScope) -> UInt64? {
        guard condition != .closed else { return nil }
        let sequence = takeSequence()
        purges.insert(scope, sequence: sequence)
        push(.removal(scope), sequence)
        return sequence
    }

    /// Removes everything; `nil` if the shard is closed.
    ///
    /// `old` takes the index, so that the caller can count and release it outside the lock. The bytes
    /// of the places on disk are not in the count.
    mutating func purgeEverything(leaving old: inout DiskIndex) -> RemovalCount? {
        guard beginPurge(.everything) != nil else { return nil }
        return dropEverything(leaving: &old)
    }

    /// `scope` is a tag or everything.
    mutating func markStale(_ scope: RemovalScope) {
        let sequence = takeSequence()
        stale.insert(scope, sequence: sequence)
        if case .tag(let tag) = scope {
            push(.stale(tag: tag), sequence)
        } else {
            push(.everythingStale, sequence)
        }
    }

    /// Queues the record of a purge, unless no segment has room for it.
    ///
    /// Such a record names a tag that is too long for every entry on disk, and only a purge in
    /// memory concerns those that carry it.
    mutating func push(_ record: PurgeRecord, _ sequence: UInt64) {
        guard record.recordBytes <= settings.recordBytesMax || Mutant.writesEveryPurge.isOn else {
            return
        }
        var record = record
        if condition == .failed, queue.purgeCount >= PurgeTable.tagsMax {
            // A device that fails for ever must not let the queue grow for ever. No entry is stored
            // meanwhile that a later purge would have to cover.
            guard !purgesEverything else { return }
            purgesEverything = true
            purges.insert(.everything, sequence: sequence)
            var old = DiskIndex()
            _ = dropEverything(leaving: &old)
            record = .removal(.everything)
        }
        _ = queue.push(
            .purge(record),
            hash: KeyHash(placement: 0, identity: 0),
            sequence: sequence,
            sizeBytes: 0,
            coversOlderRecord: false
        )
    }

    /// Empties the index and the queue of what a purge of everything covers.
    private mutating func dropEverything(leaving old: inout DiskIndex) -> RemovalCount {
        var removed = RemovalCount(entries: index.count, bytes: queue.bytes)
        swap(&index, &old)
        for older in queue.cancelEntries() { older.body?.doom() }
        removed.bytes -= queue.bytes
        for body in bodies.values {
            removed.bytes += body.occupiedBytes
            body.doom()
        }
        bodies = [:]
        assert(index.count == 0, "nothing is left")
        return removed
    }

    /// Removes one table's places of entries of that class that were stored before `sequence`.
    ///
    /// A segment that has newer records keeps its places, because a place does not tell its number;
    /// that of a large body does. Of these, reads and reclaims refuse the ones that the purge covers.
    /// To drop a newer one without a tombstone would let it come back after its removal.
    mutating func dropPlaces(
        of kept: StorageClass,
        inTable table: Int,
        before sequence: UInt64
    ) -> RemovalCount {
        // The files may belong to the next cache on the directory by now.
        guard condition != .closed else { return RemovalCount() }
        var removed = RemovalCount()
        var written: [UInt64] = []
        var jumbos: [UInt64] = []
        var queued: [Int] = []
        index.forEach(inTable: table) { slot in
            let place = slot.place
            guard place.storageClass == kept else { return }
            if place.isQueued {
                if queue[place.queueNode].sequence < sequence { queued.append(place.queueNode) }
            } else if segments[place.segment].sequenceMax <= sequence
                || place.flags.contains(.jumbo)
                    && (bodies[slot.identity]?.sequence ?? .max) < sequence
            {
                removed.bytes += place.recordBytes
                written.append(slot.identity)
                if place.flags.contains(.jumbo) { jumbos.append(slot.identity) }
            }
        }
        removed.entries = written.count + queued.count
        // Both passes meet the slots of the table in one order.
        var next = 0
        index.removeAll(inTable: table) { slot in
            guard next < written.count, written[next] == slot.identity else { return false }
            next += 1
            return true
        }
        assert(next == written.count, "each place was met again")
        for identity in jumbos {
            guard let body = bodies.removeValue(forKey: identity) else { continue }
            removed.bytes += body.occupiedBytes
            body.doom()
        }
        for node in queued {
            let hash = queue[node].hash
            removed.bytes += queue[node].sizeBytes + (bodies[hash.identity]?.occupiedBytes ?? 0)
            // The older copy may be of another class, which the purge does not cover.
            _ = dropCopies(of: hash)
        }
        return removed
    }

    // MARK: Testing

    /// Whether a purge covers this entry.
    func isPurged(_ entry: Entry, sequence: UInt64) -> Bool {
        purges.covers(entry, sequence: sequence)
    }

    /// Whether a purge or a stale mark covers the record.
    ///
    /// Such a record must not be written again: its new sequence number would exceed that of the
    /// purge.
    func isOutdated(_ record: CheckedRecord) -> Bool {
        // No mark concerns an index: it is never served.
        let tables = record.head.flags.contains(.index) ? [purges] : [purges, stale]
        return tables.contains { table in
            table.covers(
                sequence: record.head.sequence,
                flags: record.head.flags,
                createdSeconds: record.head.createdSeconds,
                key: record.key,
                tags: record.tags
            )
        }
    }

    // MARK: Replaying

    /// Repeats the purge that a record of an earlier process states.
    mutating func replay(_ record: PurgeRecord, sequence: UInt64) {
        let scope: RemovalScope
        switch record {
        case .stale(let tag): return stale.insert(.tag(tag), sequence: sequence)
        case .everythingStale: return stale.insert(.everything, sequence: sequence)
        case .removal(let removed): scope = removed
        }
        purges.insert(scope, sequence: sequence)
        switch scope {
        case .everything: index.removeAll { _ in true }
        case .storageClass(let kept): index.removeAll { $0.place.storageClass == kept }
        case .tag, .storedAfter, .storedBefore: break
        }
    }
}
