import Synchronization

/// The result of an attempt to read.
package enum ReadResult: Sendable {
    case hit(StoredEntry, DiskToken)
    case miss
    /// The read must wait for the device: use `readWaiting`, which returns this if it was refused.
    case mustWait
}

extension DiskShard {
    nonisolated func read(_ hash: KeyHash, key: UnsafeRawBufferPointer) -> ReadResult {
        let result = readAtOnce(hash, key: key)
        switch result {
        case .hit(_, let token): countUse(hash, isQueued: token.isQueued)
        case .miss: state.withLock { $0.counters.misses += 1 }
        case .mustWait: break
        }
        return result
    }

    /// Counts a hit that was found without waiting.
    nonisolated func countUse(_ hash: KeyHash, isQueued: Bool) {
        state.withLock { state in
            if isQueued { state.counters.hitsQueued += 1 } else { state.counters.hitsCached += 1 }
            state.index.countUse(of: hash.identity)
        }
    }

    /// Reads as `read` does, and counts neither a hit nor a miss.
    nonisolated func readAtOnce(_ hash: KeyHash, key: UnsafeRawBufferPointer) -> ReadResult {
        let found = state.withLock { $0.lookUp(hash.identity) }
        switch found {
        case .nothing: return .miss
        case .queued(let entry, let body, let token):
            return queuedHit(entry, body, token, key: key)
        case .onDisk(let lease):
            guard lease.readBytes <= RecordReader.cachedBytesMax else {
                state.withLock { $0.giveBack(lease) }
                return .mustWait
            }
            let outcome = RecordReader(volume: volume).read(lease, .pageCacheOnly)
            guard case .entry(let entry, let sequence, let reference) = outcome else {
                state.withLock { $0.giveBack(lease) }
                return .mustWait
            }
            return finish(lease, entry, sequence: sequence, body: reference, key: key)
        }
    }

    /// Ends the read of a page-cached record: returns the lease and checks again that the record
    /// may be used.
    private nonisolated func finish(
        _ lease: ReadLease,
        _ entry: Entry,
        sequence: UInt64,
        body reference: BodyReference?,
        key: UnsafeRawBufferPointer
    ) -> ReadResult {
        let isOther = !entry.withKey { $0.hasSameBytes(as: key) } && !Mutant.matchesKeysByHash.isOn
        var body: JumboFile?
        var mustLookAgain = false
        let isUsable = state.withLock { state in
            state.giveBack(lease)
            mustLookAgain = state.isReclaimed(lease.token)
            if mustLookAgain { return false }
            if let reference {
                body = state.usableBody(lease.identity, reference)
                mustLookAgain = body == nil && state.isSuperseded(lease)
                guard body != nil else { return false }
            }
            return !isOther && !state.isPurged(entry, sequence: sequence)
        }
        if mustLookAgain { return .mustWait }
        guard isUsable else {
            // An entry without its body was dropped, and its tombstone must be written.
            if reference != nil { requestWriting() }
            return .miss
        }
        return .hit(StoredEntry(entry, detachedBody: body.map(DiskBody.init)), lease.token)
    }

    private nonisolated func queuedHit(
        _ entry: Entry,
        _ body: JumboFile?,
        _ token: DiskToken,
        key: UnsafeRawBufferPointer
    ) -> ReadResult {
        let isSame =
            entry.withKey { $0.hasSameBytes(as: key) } || Mutant.matchesQueuedKeysByHash.isOn
        guard isSame else { return .miss }
        return .hit(StoredEntry(entry, detachedBody: body.map(DiskBody.init)), token)
    }

    // MARK: Waiting for the device

    /// Reads on the I/O pool, which refuses reads if too many wait.
    ///
    /// A read that `mayRefuse` then returns `.mustWait`; any other one is done on the shard's lane,
    /// which refuses nothing. A read that the device does not return in time returns `.mustWait`.
    nonisolated func readWaiting(
        _ hash: KeyHash,
        key: [UInt8],
        mayRefuse: Bool,
        untilNanoseconds: UInt64
    ) async -> ReadResult {
        for _ in 0..<Self.readsMax {
            let result = await readOnce(
                hash,
                key: key,
                mayRefuse: mayRefuse,
                untilNanoseconds: untilNanoseconds
            )
            if let result { return result }
        }
        return mayRefuse ? .mustWait : .miss
    }

    /// The most reads of an entry that is replaced or moved during each of them.
    private static let readsMax = 16

    /// Returns `nil` if the look-up must be repeated: another copy replaced the entry, whose body is
    /// gone, or the segment of the copy was reclaimed.
    private nonisolated func readOnce(
        _ hash: KeyHash,
        key: [UInt8],
        mayRefuse: Bool,
        untilNanoseconds: UInt64
    ) async -> ReadResult? {
        var (early, loading) = await join(hash, untilNanoseconds: untilNanoseconds)
        if case .refused = loading, !mayRefuse, !Mutant.takesRefusalsForAbsence.isOn {
            let onLane = try? await watch.call(untilNanoseconds: untilNanoseconds) { [self] in
                await loadOnLane(hash)
            }
            (early, loading) = onLane ?? (.nothing, .abandoned)
        }
        if case .queued(let entry, let body, let token) = early {
            let result = key.withUnsafeBytes { queuedHit(entry, body, token, key: $0) }
            if case .hit = result {
                countUse(hash, isQueued: true)
            } else {
                state.withLock { $0.counters.misses += 1 }
            }
            return result
        }
        if case .superseded = loading, !Mutant.missesReplacedBodies.isOn { return nil }
        guard case .loaded(let loaded) = loading else {
            state.withLock { $0.counters.misses += 1 }
            switch loading {
            case .refused, .abandoned: return .mustWait
            case .loaded, .nothing, .superseded: return .miss
            }
        }
        let isOther = !key.withUnsafeBytes { key in
            loaded.entry.withKey { $0.hasSameBytes(as: key) }
        }
        let isUsable = state.withLock { state -> Bool? in
            if state.isReclaimed(loaded.token) { return nil }
            guard !isOther, !state.isPurged(loaded.entry, sequence: loaded.sequence) else {
                state.counters.misses += 1
                return false
            }
            state.counters.hitsWaited += 1
            state.index.countUse(of: hash.identity)
            return true
        }
        guard let isUsable else { return nil }
        guard isUsable else { return .miss }
        let body = loaded.body.map(DiskBody.init)
        return .hit(StoredEntry(loaded.entry, detachedBody: body), loaded.token)
    }

    /// Waits for a read of the record; the copy, with `.nothing`, if no read is needed.
    private nonisolated func join(
        _ hash: KeyHash,
        untilNanoseconds: UInt64
    ) async -> (Found, LoadResult) {
        var early: Found = .nothing
        let wait = watch.makeNumber()
        let loading: LoadResult = await withTaskCancellationHandler {
            await withUnsafeContinuation { reader in
                let begins = watch.begin(wait, .read(reader), untilNanoseconds: untilNanoseconds)
                guard begins else { return reader.resume(returning: .abandoned) }
                early = join(hash, wait)
            }
        } onCancel: {
            watch.leave(wait)
        }
        return (early, loading)
    }

    /// Joins a running read of the same record, or starts one.
    ///
    /// If no read is needed, the wait ends with `.nothing` at once and the result is returned.
    private nonisolated func join(_ hash: KeyHash, _ wait: DiskWatch.Number) -> Found {
        let (found, isLeader) = state.withLock { state -> (Found, Bool) in
            let found = state.lookUp(hash.identity)
            guard case .onDisk(let lease) = found else { return (found, false) }
            if var running = state.reads[hash.identity] {
                if running.location == lease.place.location, running.generation == lease.generation
                {
                    state.giveBack(lease)
                    state.counters.readsJoined += 1
                    running.waits.append(wait)
                    state.reads[hash.identity] = running
                    return (found, false)
                }
                // The record moved while its old place was being read: read for this caller alone.
                return (found, true)
            }
            state.reads[hash.identity] = JoinedRead(
                location: lease.place.location,
                generation: lease.generation,
                waits: []
            )
            return (found, true)
        }
        guard case .onDisk(let lease) = found else {
            watch.end(wait, with: .nothing)
            return found
        }
        guard isLeader else { return found }
        let isAccepted = pool.submit { [self] in
            finish(lease, load(lease, hash), wait)
        }
        if !isAccepted {
            state.withLock { $0.counters.readsRefused += 1 }
            finish(lease, .refused, wait)
        }
        return found
    }

    /// Reads on the shard's lane.
    private func loadOnLane(_ hash: KeyHash) -> (Found, LoadResult) {
        let found = state.withLock { $0.lookUp(hash.identity) }
        guard case .onDisk(let lease) = found else { return (found, .nothing) }
        let result = load(lease, hash)
        let wake = state.withLock { state in
            state.giveBack(lease)
            return state.wakeAfterChange()
        }
        perform(wake)
        return (found, result)
    }

    /// Reads, and waits for the device; retries a damaged record once, then drops it.
    private nonisolated func load(_ lease: ReadLease, _ hash: KeyHash) -> LoadResult {
        let reader = RecordReader(volume: volume)
        for attempt in 0..<2 {
            switch reader.read(lease, .waits) {
            case .entry(let entry, let sequence, let reference):
                let (body, isSuperseded) = state.withLock { state in
                    let body = reference.flatMap { state.usableBody(lease.identity, $0) }
                    return (body, state.isSuperseded(lease))
                }
                guard reference == nil || body != nil else {
                    return isSuperseded ? .superseded : .nothing
                }
                return .loaded(
                    LoadedEntry(entry: entry, body: body, sequence: sequence, token: lease.token)
                )
            case .mustWait, .damaged:
                guard attempt == 1 else { continue }
                state.withLock { state in
                    state.counters.recordsDamaged += 1
                    state.dropUnreadable(lease, hash: hash)
                }
            case .failed(let fault):
                noteReadError(fault)
                state.withLock { state in
                    state.counters.readErrors += 1
                    state.dropUnreadable(lease, hash: hash)
                }
                return .nothing
            }
        }
        return .nothing
    }

    private nonisolated func finish(
        _ lease: ReadLease,
        _ result: LoadResult,
        _ wait: DiskWatch.Number
    ) {
        let (others, wake) = state.withLock { state -> ([DiskWatch.Number], ShardState.Wake) in
            state.giveBack(lease)
            var others: [DiskWatch.Number] = []
            if let running = state.reads[lease.identity],
                running.location == lease.place.location, running.generation == lease.generation
            {
                others = running.waits
                state.reads[lease.identity] = nil
            }
            return (others, state.wakeAfterChange())
        }
        perform(wake)
        watch.end(wait, with: result)
        for other in others { watch.end(other, with: result) }
    }
}
