/// Purges, hard and soft: how one is made, which record it leaves in the log, which entries it
/// covers, and how an opening repeats it.
///
///     DiskTier.removeAll ──▶ purge ─────┐
///     DiskTier.markStale ──▶ markStale ─┴─▶ push ──▶ DiskShard.confirmRemovals writes the log
///
/// A purge by tag looks at no entry. The table `purges` remembers it, and every read asks
/// `isPurged`. The table `stale` remembers soft ones, and `DiskTier.isMarkedStale` asks it. A record
/// that is written again asks `isOutdated` first. The next opening replays the records
/// (`DiskShard+Recovery.swift`).
extension ShardState {
    // MARK: Making

    /// Removes the entries in `scope`: readers learn of it from the table, the next process from the
    /// record.
    mutating func purge(_ scope: RemovalScope) -> RemovalCount {
        let sequence = takeSequence()
        purges.insert(scope, sequence: sequence)
        let removed = dropPlaces(in: scope)
        push(.removal(scope), sequence)
        return removed
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
            _ = dropPlaces(in: .everything)
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

    /// Removes the places that `scope` covers, as far as a place alone can decide that.
    private mutating func dropPlaces(in scope: RemovalScope) -> RemovalCount {
        var removed = RemovalCount()
        var cancelled: [Int] = []
        var dropped: [UInt64] = []
        index.removeAll { slot in
            switch scope {
            case .everything: break
            case .storageClass(let kept):
                guard slot.place.storageClass == kept else { return false }
            case .tag, .storedAfter, .storedBefore: return false
            }
            removed.entries += 1
            removed.bytes += slot.place.isQueued ? 0 : slot.place.recordBytesMax
            if slot.place.isQueued { cancelled.append(slot.place.queueNode) }
            if slot.place.flags.contains(.jumbo) { dropped.append(slot.identity) }
            return true
        }
        for node in cancelled where queue[node].state == .queued {
            removed.bytes += queue[node].sizeBytes
            let hash = queue[node].hash
            let older = queue.cancel(node)
            // The older copy may be of another class, which the purge does not cover.
            if older.isOnDisk { pushTombstone(hash, over: older) } else { older.body?.doom() }
        }
        for identity in dropped {
            guard let body = bodies.removeValue(forKey: identity) else { continue }
            removed.bytes += body.occupiedBytes
            body.doom()
        }
        assert(scope != .everything || index.count == 0 && bodies.isEmpty, "nothing is left")
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
        [purges, stale].contains { table in
            table.covers(
                sequence: record.head.sequence,
                storageClass: record.head.storageClass,
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
