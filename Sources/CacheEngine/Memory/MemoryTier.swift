import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The entries held in memory, spread over shards by the hash of their key.
///
/// The linearisation point of every operation on a key is in its shard: after `store` or `remove`
/// returns, nobody sees the old entry. Reading takes no lock, whatever the policy.
package final class MemoryTier: Sendable {
    /// The shards, concrete for each policy, so that each is specialised.
    enum Shards {
        case sizeAware(ShardSet<SizeAwarePolicy>)
        case s3FIFO(ShardSet<S3FIFOPolicy>)
    }

    enum LookUp: Int, CaseIterable {
        case hit, miss
    }

    let shards: Shards
    let commons: ShardCommons
    let trial: GateTrial?
    let lookUps = ThreadCounts(fieldCount: LookUp.allCases.count)
    let mustFence = ReaderGate.mustFence
    private let shardShift: UInt64
    private let shardMask: UInt64
    private let entrySizeShareMax: Double
    /// Held while the capacity changes, by one at a time.
    private let resizing = Mutex(())

    /// `onEviction` gets each entry that made way for another, outside any lock.
    package init(
        _ configuration: MemoryConfiguration,
        onEviction: (@Sendable (Entry) -> Void)? = nil
    ) {
        let count = configuration.effectiveShardCount
        var objective = EvictionPolicy.Objective.bytes
        if case .sizeAware(let wished) = configuration.policy { objective = wished }
        let shared = SharedPolicyState(
            objective: objective,
            capacityBytes: configuration.capacityBytes,
            pinnedShareMax: configuration.pinnedShareMax
        )
        trial = configuration.policy == .s3FIFO ? nil : GateTrial(shared: shared)
        commons = ShardCommons(
            shared: shared,
            shardCount: count,
            trial: trial,
            onEviction: onEviction
        )
        switch configuration.policy {
        case .sizeAware: shards = .sizeAware(ShardSet(commons: commons))
        case .s3FIFO: shards = .s3FIFO(ShardSet(commons: commons))
        }
        commons.used.takeAnyway(lookUps.sizeBytes + (trial?.sizeBytes ?? 0))
        shardShift = UInt64(64 - count.trailingZeroBitCount)
        shardMask = UInt64(count - 1)
        entrySizeShareMax = configuration.entrySizeShareMax
    }

    /// How many shards there are.
    package var shardCount: Int { commons.shardCount }

    // MARK: Writing

    /// Keeps `entry`, replacing what was there; a refusal removes what was there too.
    ///
    /// `isPermitted` is asked first; when it says no, nothing changes and the outcome is
    /// `.removedMeanwhile`. `whileLocked` runs once otherwise. Both run inside the key's critical
    /// section, must be short, and must not call the memory; `isPermitted` may be asked again.
    @discardableResult
    package func store(
        _ entry: Entry,
        nowSeconds: UInt32,
        whileLocked: (StoreVerdict) -> Void = { _ in },
        onlyIf isPermitted: () -> Bool = { true }
    ) -> StoreOutcome {
        put(entry, nowSeconds, onlyIf: { _ in isPermitted() }, whileLocked)
            ?? .refused(.removedMeanwhile)
    }

    /// Puts an entry read from disk into memory, if the key is absent and `isCurrent` under the lock.
    @discardableResult
    package func promote(
        _ entry: Entry,
        nowSeconds: UInt32,
        onlyIf isCurrent: () -> Bool = { true }
    ) -> Bool {
        guard refusal(of: entry, nowSeconds) == nil, !isOccupied(entry.head.hash) else {
            return false
        }
        let outcome = put(
            entry,
            nowSeconds,
            onlyIf: { occupant in occupant == nil && isCurrent() },
            { _ in }
        )
        return outcome == .stored
    }

    /// Replaces `old` by `new`, if the key still holds that very entry and `isPermitted`.
    ///
    /// `whileLocked` runs once when that is so, with what became of `new`.
    @discardableResult
    package func replaceIfSame(
        _ new: Entry,
        expecting old: Entry,
        nowSeconds: UInt32,
        whileLocked: (StoreVerdict) -> Void = { _ in },
        onlyIf isPermitted: () -> Bool = { true }
    ) -> Bool {
        put(new, nowSeconds, onlyIf: { $0?.storage === old.storage && isPermitted() }, whileLocked)
            != nil
    }

    // MARK: Removing

    /// Removes the entry for the key and returns it; `whileLocked` runs once, found or not.
    @discardableResult
    package func remove(
        _ hash: KeyHash,
        key: UnsafeRawBufferPointer,
        whileLocked: (Entry?) -> Void = { _ in }
    ) -> Entry? {
        let isMeant: (Entry) -> Bool = { $0.withKey { $0.hasSameBytes(as: key) } }
        switch shards {
        case .sizeAware(let set):
            return set.shard(of: hash).remove(hash, onlyIf: isMeant, whileLocked: whileLocked)
        case .s3FIFO(let set):
            return set.shard(of: hash).remove(hash, onlyIf: isMeant, whileLocked: whileLocked)
        }
    }

    /// Removes the entries in `scope` whose sequence is at most `sequenceMax`.
    ///
    /// Entries that were there when the call began are gone when it returns. Few slots are looked
    /// at per lock hold, so readers and writers go on meanwhile; what they store with a greater
    /// sequence stays.
    package func removeAll(
        in scope: RemovalScope,
        sequenceMax: UInt64 = .max
    ) -> RemovalCount {
        let isMeant: (Entry) -> Bool = {
            $0.head.sequence <= sequenceMax && $0.isCovered(by: scope)
        }
        var count = RemovalCount()
        switch shards {
        case .sizeAware(let set):
            for shard in set.shards { count = count + shard.removeEach(isMeant) }
        case .s3FIFO(let set):
            for shard in set.shards { count = count + shard.removeEach(isMeant) }
        }
        commons.limbo.flush()
        return count
    }

    /// Returns when everybody who was inside a key's critical section has left it.
    ///
    /// Who was permitted to store before the call, by whatever `isPermitted` looked at, has stored
    /// by then, with what `whileLocked` does.
    package func letWritersFinish() {
        switch shards {
        case .sizeAware(let set): for shard in set.shards { shard.state.withLock { _ in } }
        case .s3FIFO(let set): for shard in set.shards { shard.state.withLock { _ in } }
        }
    }

    /// Removes what has expired.
    @discardableResult
    package func sweepExpired(nowSeconds: UInt32) async -> RemovalCount {
        var count = RemovalCount()
        switch shards {
        case .sizeAware(let set):
            for shard in set.shards {
                count = count + (await shard.sweepExpired(nowSeconds: nowSeconds))
            }
        case .s3FIFO(let set):
            for shard in set.shards {
                count = count + (await shard.sweepExpired(nowSeconds: nowSeconds))
            }
        }
        commons.limbo.flush()
        return count
    }

    /// Changes the capacity; when it returns, no more than that is in use.
    ///
    /// Less than the tables themselves need is reached as nearly as an empty memory can.
    package func setCapacity(_ bytes: Int) { resizing.withLock { _ in resize(to: bytes) } }

    /// Evicts until no more than that share of the capacity is in use; the capacity stays.
    package func shrink(toShare share: Double) {
        resizing.withLock { _ in
            let capacity = commons.used.capacity
            resize(to: Int(Double(capacity) * share))
            resize(to: capacity)
        }
    }

    private func resize(to bytes: Int) {
        let bytes = max(0, bytes)
        commons.shared.capacityBytes.store(bytes, ordering: .relaxed)
        trial?.setCapacity(bytes)
        switch shards {
        case .sizeAware(let set): set.shrinkToCapacity()
        case .s3FIFO(let set): set.shrinkToCapacity()
        }
        commons.limbo.flush()
    }

    // MARK: Looking

    /// The largest entry that is kept.
    package var entrySizeBytesMax: Int {
        Int(Double(commons.used.capacity) * entrySizeShareMax)
    }

    /// How much is held, without walking any shard.
    package func usage() -> StoreUsage {
        var usage = StoreUsage(
            bytes: commons.used.current,
            capacityBytes: commons.used.capacity
        )
        switch shards {
        case .sizeAware(let set):
            for shard in set.shards { usage.entries += shard.state.withLock { $0.count } }
        case .s3FIFO(let set):
            for shard in set.shards { usage.entries += shard.state.withLock { $0.count } }
        }
        return usage
    }

    /// The part of the bytes in use that no entry is charged for: tables, queues, sketches.
    package var overheadBytes: Int {
        let fixed = lookUps.sizeBytes + (trial?.sizeBytes ?? 0)
        switch shards {
        case .sizeAware(let set):
            return set.shards.reduce(fixed) { $0 + $1.state.withLock { $0.sizeBytes } }
        case .s3FIFO(let set):
            return set.shards.reduce(fixed) { $0 + $1.state.withLock { $0.sizeBytes } }
        }
    }

    package func counters() -> MemoryCounters {
        var sum = MemoryCounters()
        switch shards {
        case .sizeAware(let set):
            for shard in set.shards { sum = sum + shard.state.withLock { $0.counters } }
        case .s3FIFO(let set):
            for shard in set.shards { sum = sum + shard.state.withLock { $0.counters } }
        }
        sum.hits = lookUps.sum(LookUp.hit.rawValue)
        sum.misses = lookUps.sum(LookUp.miss.rawValue)
        return sum
    }

    // MARK: Inside

    @inline(__always)
    func shardIndex(of hash: KeyHash) -> Int {
        // A shift by 64, for a single shard, gives zero.
        Int(truncatingIfNeeded: (hash.placement >> shardShift) & shardMask)
    }

    private func isOccupied(_ hash: KeyHash) -> Bool {
        switch shards {
        case .sizeAware(let set): set.shard(of: hash).lockedEntry(hash) != nil
        case .s3FIFO(let set): set.shard(of: hash).lockedEntry(hash) != nil
        }
    }

    private func put(
        _ entry: Entry,
        _ nowSeconds: UInt32,
        onlyIf isMeant: (Entry?) -> Bool,
        _ whileLocked: (StoreVerdict) -> Void
    ) -> StoreOutcome? {
        let isPinned = isExempt(entry)
        let reason = refusal(of: entry, nowSeconds)
        switch shards {
        case .sizeAware(let set):
            if let reason {
                return set.refuse(entry, reason, onlyIf: isMeant, whileLocked: whileLocked)
            }
            return set.store(entry, isPinned: isPinned, onlyIf: isMeant, whileLocked: whileLocked)
        case .s3FIFO(let set):
            if let reason {
                return set.refuse(entry, reason, onlyIf: isMeant, whileLocked: whileLocked)
            }
            return set.store(entry, isPinned: isPinned, onlyIf: isMeant, whileLocked: whileLocked)
        }
    }

    /// Whether the entry is pinned and pinned entries are under their share.
    private func isExempt(_ entry: Entry) -> Bool {
        guard entry.head.storageClass == .pinned else { return false }
        let pinned = commons.shared.pinnedBytes.load(ordering: .relaxed) + entry.chargeBytes
        return pinned <= commons.shared.pinnedBytesMax
    }

    private func refusal(of entry: Entry, _ nowSeconds: UInt32) -> StoreOutcome.Reason? {
        if Double(entry.chargeBytes) > Double(commons.used.capacity) * entrySizeShareMax {
            return .tooLarge
        }
        return entry.isExpired(nowSeconds: nowSeconds) ? .notAdmitted : nil
    }
}

extension MemoryConfiguration {
    /// The number of shards: four to a core, fewer where each would be very small.
    var effectiveShardCount: Int {
        if let shardCount { return Self.powerOfTwo(atLeast: min(shardCount, 1024)) }
        let cores = Self.powerOfTwo(atLeast: Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        var count = max(16, cores * 4)
        while count > 1, capacityBytes / count < Self.shardSizeBytesMin { count /= 2 }
        return count
    }

    /// Below this a shard would hold too little to be worth its table.
    private static let shardSizeBytesMin = 1 << 20

    private static func powerOfTwo(atLeast count: Int) -> Int {
        var power = 1
        while power < count { power *= 2 }
        return power
    }
}
