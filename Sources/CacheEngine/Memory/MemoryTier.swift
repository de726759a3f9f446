import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The entries held in memory, spread over shards by the hash of their key.
///
/// The linearisation point of every operation on a key is the critical section of its shard: after
/// `store` or `remove` returns, nobody sees the old entry.
package final class MemoryTier: Sendable {
    package let shards: [MemoryShard]
    private let shardShift: UInt64
    private let configuration: MemoryConfiguration
    private let capacity: Atomic<Int>
    private let observeEviction: (@Sendable (Entry) -> Void)?

    /// `onEviction` gets each entry that made way for another, outside any lock.
    package init(
        _ configuration: MemoryConfiguration,
        onEviction: (@Sendable (Entry) -> Void)? = nil
    ) {
        let count = Self.shardCount(for: configuration)
        self.configuration = configuration
        observeEviction = onEviction
        capacity = Atomic(configuration.capacityBytes)
        shardShift = UInt64(64 - count.trailingZeroBitCount)
        let limits = Self.limits(for: configuration, bytes: configuration.capacityBytes / count)
        shards = (0..<count).map { _ in
            MemoryShard(
                capacityBytes: configuration.capacityBytes / count,
                entrySizeBytesMax: limits.entry,
                pinnedBytesMax: limits.pinned
            )
        }
    }

    // MARK: Reading

    /// The entry for the key, counted as a hit or a miss.
    package func entry(
        for hash: KeyHash,
        key: UnsafeRawBufferPointer,
        nowSeconds: UInt32
    ) -> Entry? {
        shard(hash).table.withLock { $0.find(hash, key, nowSeconds: nowSeconds) }
    }

    /// Calls `read` with the entry for the key, which must not escape it.
    package func withEntry<Result>(
        for hash: KeyHash,
        key: UnsafeRawBufferPointer,
        nowSeconds: UInt32,
        _ read: (Entry) -> Result
    ) -> Result? {
        entry(for: hash, key: key, nowSeconds: nowSeconds).map(read)
    }

    /// The entry for the key, without counting the look.
    package func peek(
        for hash: KeyHash,
        key: UnsafeRawBufferPointer,
        nowSeconds: UInt32
    ) -> Entry? {
        shard(hash).table.withLock { $0.peek(hash, key, nowSeconds: nowSeconds) }
    }

    // MARK: Writing

    /// Keeps `entry`, replacing what was there; a refusal removes what was there too.
    ///
    /// `isPermitted` is asked first; when it says no, nothing changes and the outcome is
    /// `.removedMeanwhile`. `whileLocked` runs once otherwise. Both run inside the key's critical
    /// section, must be short, and must not call the memory.
    @discardableResult
    package func store(
        _ entry: Entry,
        nowSeconds: UInt32,
        whileLocked: (StoreVerdict) -> Void = { _ in },
        onlyIf isPermitted: () -> Bool = { true }
    ) -> StoreOutcome {
        let hash = entry.head.hash
        var evicted: [Entry] = []
        var old: Entry?
        let outcome = shard(hash).table.withLock { table -> StoreOutcome in
            guard isPermitted() else { return .refused(.removedMeanwhile) }
            // Before the size check: a refused replacement must not leave the old entry readable.
            old = table.remove(hash)
            if let reason = Self.refusal(of: entry, by: table, nowSeconds: nowSeconds) {
                table.counters.refusals += 1
                whileLocked(.refused(reason, removed: old))
                return .refused(reason)
            }
            table.insert(entry, hash: hash, evicting: &evicted)
            whileLocked(.stored(replaced: old))
            return .stored
        }
        report(evicted)
        return outcome
    }

    /// Puts an entry read from disk into memory, if the key is absent and `isCurrent` under the lock.
    @discardableResult
    package func promote(
        _ entry: Entry,
        nowSeconds: UInt32,
        onlyIf isCurrent: () -> Bool = { true }
    ) -> Bool {
        let hash = entry.head.hash
        var evicted: [Entry] = []
        let isPromoted = shard(hash).table.withLock { table -> Bool in
            guard table.occupant(hash) == nil, isCurrent(),
                Self.refusal(of: entry, by: table, nowSeconds: nowSeconds) == nil
            else { return false }
            table.insert(entry, hash: hash, evicting: &evicted)
            return true
        }
        report(evicted)
        return isPromoted
    }

    /// Replaces `old` by `new`, if the key still holds that very entry.
    ///
    /// `whileLocked` runs once when it does, with what became of `new`.
    @discardableResult
    package func replaceIfSame(
        _ new: Entry,
        expecting old: Entry,
        nowSeconds: UInt32,
        whileLocked: (StoreVerdict) -> Void = { _ in }
    ) -> Bool {
        let hash = new.head.hash
        var evicted: [Entry] = []
        let isReplaced = shard(hash).table.withLock { table -> Bool in
            guard let occupant = table.occupant(hash), occupant.storage === old.storage else {
                return false
            }
            _ = table.remove(hash)
            if let reason = Self.refusal(of: new, by: table, nowSeconds: nowSeconds) {
                table.counters.refusals += 1
                whileLocked(.refused(reason, removed: old))
                return true
            }
            table.insert(new, hash: hash, evicting: &evicted)
            whileLocked(.stored(replaced: old))
            return true
        }
        report(evicted)
        return isReplaced
    }

    // MARK: Removing

    /// Removes the entry for the key and returns it; `whileLocked` runs once, found or not.
    @discardableResult
    package func remove(
        _ hash: KeyHash,
        key: UnsafeRawBufferPointer,
        whileLocked: (Entry?) -> Void = { _ in }
    ) -> Entry? {
        shard(hash).table.withLock { table in
            guard let entry = table.occupant(hash), entry.withKey({ $0.hasSameBytes(as: key) })
            else {
                whileLocked(nil)
                return nil
            }
            let removed = table.remove(hash)
            whileLocked(removed)
            return removed
        }
    }

    /// Removes the entries in `scope` whose sequence is at most `sequenceMax`.
    ///
    /// Entries that were there when the call began are gone when it returns. Few entries are looked
    /// at per lock hold, so readers and writers go on meanwhile; what they store with a greater
    /// sequence stays.
    package func removeAll(
        in scope: RemovalScope,
        sequenceMax: UInt64 = .max
    ) -> RemovalCount {
        shards.reduce(RemovalCount()) { count, shard in
            count
                + shard.removeEach { $0.head.sequence <= sequenceMax && $0.isCovered(by: scope) }
        }
    }

    /// Removes what has expired.
    @discardableResult
    package func sweepExpired(nowSeconds: UInt32) async -> RemovalCount {
        var count = RemovalCount()
        for shard in shards { count = count + (await shard.sweepExpired(nowSeconds: nowSeconds)) }
        return count
    }

    // MARK: Looking

    /// The largest entry that is kept.
    package var entrySizeBytesMax: Int {
        Self.limits(
            for: configuration,
            bytes: capacity.load(ordering: .relaxed) / shards.count
        ).entry
    }

    /// How much is held, without walking anything.
    package func usage() -> StoreUsage {
        var usage = StoreUsage(capacityBytes: capacity.load(ordering: .relaxed))
        for shard in shards {
            shard.table.withLock {
                usage.entries += $0.count
                usage.bytes += $0.usedBytes
            }
        }
        return usage
    }

    package func counters() -> MemoryCounters {
        shards.reduce(MemoryCounters()) { sum, shard in
            sum + shard.table.withLock { $0.counters }
        }
    }

    /// Changes the capacity; when it returns, no more than that is in use.
    package func setCapacity(_ bytes: Int) {
        let bytes = max(0, bytes)
        capacity.store(bytes, ordering: .relaxed)
        let limits = Self.limits(for: configuration, bytes: bytes / shards.count)
        for shard in shards {
            var evicted: [Entry] = []
            shard.table.withLock {
                $0.setCapacity(
                    bytes / shards.count,
                    entrySizeBytesMax: limits.entry,
                    pinnedBytesMax: limits.pinned,
                    evicting: &evicted
                )
            }
            report(evicted)
        }
    }

    private func report(_ evicted: [Entry]) {
        guard let observeEviction else { return }
        for entry in evicted { observeEviction(entry) }
    }

    private func shard(_ hash: KeyHash) -> MemoryShard {
        shards[shards.count == 1 ? 0 : Int(truncatingIfNeeded: hash.placement >> shardShift)]
    }

    private static func refusal(
        of entry: Entry,
        by table: borrowing ShardTable,
        nowSeconds: UInt32
    ) -> StoreOutcome.Reason? {
        if table.isTooLarge(entry) { return .tooLarge }
        return entry.isExpired(nowSeconds: nowSeconds) ? .notAdmitted : nil
    }

    private static func limits(
        for configuration: MemoryConfiguration,
        bytes: Int
    ) -> (entry: Int, pinned: Int) {
        (
            Int(Double(bytes) * configuration.entrySizeShareMax),
            Int(Double(bytes) * configuration.pinnedShareMax)
        )
    }

    private static func shardCount(for configuration: MemoryConfiguration) -> Int {
        if let count = configuration.shardCount { return powerOfTwo(atLeast: min(count, 1024)) }
        let cores = powerOfTwo(atLeast: Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        var count = max(16, cores * 4)
        while count > 1, configuration.capacityBytes / count < shardSizeBytesMin { count /= 2 }
        return count
    }

    /// Below this a shard would be too small for its queues to mean anything.
    private static let shardSizeBytesMin = 1 << 20

    private static func powerOfTwo(atLeast count: Int) -> Int {
        var power = 1
        while power < count { power *= 2 }
        return power
    }
}
