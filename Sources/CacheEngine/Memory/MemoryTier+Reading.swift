import Synchronization

/// Reading.
///
/// A thread that has a `ReaderGate` waits for no lock; 4,096 threads at a time have one. A hit on a
/// sampled key tries the locks of the trial and of its shard, and goes on if another thread has one.
/// Every other thread reads by `peek`, which takes the lock of the key's shard.
extension MemoryTier {
    /// The entry for the key, counted as a hit or a miss.
    package func entry(for hash: KeyHash, key: UnsafeRawBufferPointer) -> Entry? {
        look(for: hash, key: key) { $0 }
    }

    /// The same entry as a reference that the caller must release.
    func retainedEntry(
        for hash: KeyHash,
        key: UnsafeRawBufferPointer
    ) -> Unmanaged<ByteStorage>? {
        look(for: hash, key: key) { Unmanaged.passRetained($0.storage) }
    }

    /// Calls `read` with the entry for the key, and counts a hit or a miss.
    ///
    /// Returns `false` if there is no entry. The entry is not retained: `read` should be short, and
    /// must neither wait nor write to the memory. Not generic, so that other modules call the code
    /// that was specialised here.
    package func withEntry(
        for hash: KeyHash,
        key: UnsafeRawBufferPointer,
        _ read: (Entry) -> Void
    ) -> Bool {
        look(for: hash, key: key) { read($0) } != nil
    }

    /// The look-up, inlined into each of its callers.
    @inline(__always)
    private func look<Result>(
        for hash: KeyHash,
        key: UnsafeRawBufferPointer,
        _ read: (Entry) -> Result
    ) -> Result? {
        guard let gate = ReaderGate.current else { return peek(for: hash, key: key).map(read) }
        gate.enter(mustFence)
        let table = commons.table(of: commons.shard(at: hash.placement))
        guard let (slot, found) = table.find(hash, key) else {
            gate.leave()
            lookUps.add(1, to: LookUp.miss.rawValue, by: gate.index)
            return nil
        }
        if table.countHit(slot), trial.isSampled(hash.identity), commons.isTrialWatching {
            note(found, to: trial)
        }
        let result = found._withUnsafeGuaranteedRef { read(Entry(unchecked: $0)) }
        gate.leave()
        lookUps.add(1, to: LookUp.hit.rawValue, by: gate.index)
        return result
    }

    /// Not inlined: a hit would retain the entry for this call.
    @inline(never)
    private func note(_ found: Unmanaged<ByteStorage>, to trial: GateTrial) {
        found._withUnsafeGuaranteedRef { storage in
            let entry = Entry(unchecked: storage)
            shards.note(
                entry.head.hash,
                chargeBytes: entry.chargeBytes,
                to: trial,
                mayCompute: false
            )
        }
    }

    /// Whether there is an entry for the key.
    ///
    /// Counts neither a hit nor a miss.
    func contains(_ hash: KeyHash, key: UnsafeRawBufferPointer) -> Bool {
        guard let gate = ReaderGate.current else { return peek(for: hash, key: key) != nil }
        gate.enter(mustFence)
        defer { gate.leave() }
        return commons.table(of: commons.shard(at: hash.placement)).find(hash, key) != nil
    }

    /// How often the entry with that identity, at a placement of those, was requested of late; 0 if it
    /// is not here.
    package func requests(of identity: UInt64, placedIn placements: ClosedRange<UInt64>) -> Int {
        let first = commons.shard(at: placements.lowerBound)
        let last = commons.shard(at: placements.upperBound)
        return shards.doors[first...last].reduce(0) { most, door in
            max(most, door.state.withLock { $0.requests(of: identity) })
        }
    }

    /// The entry for the key.
    ///
    /// Counts neither a hit nor a miss.
    package func peek(for hash: KeyHash, key: UnsafeRawBufferPointer) -> Entry? {
        guard let entry = shards.door(of: hash).lockedEntry(hash),
            entry.withKey({ $0.hasSameBytes(as: key) })
        else { return nil }
        return entry
    }
}
