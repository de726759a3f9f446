import Synchronization

/// The entries held in memory, spread over shards by the hash of their key.
///
/// Every operation on a key takes effect inside the key's shard: once `store` or `remove` returns,
/// no reader sees the old entry. Reading waits for no lock, except for `peek` and on a thread
/// without a `ReaderGate`. Work on many entries is done by the shards' actors
/// (`MemoryTier+Upkeep.swift`).
package final class MemoryTier: Sendable {
    enum LookUp: Int, CaseIterable {
        case hit, miss
    }

    let shards: ShardSet
    let commons: ShardCommons
    let trial: GateTrial
    let lookUps = ThreadCounts(fieldCount: LookUp.allCases.count)
    let mustFence = ReaderGate.mustFence
    private let entrySizeShareMax: Double
    let sweeper: MemorySweeper
    /// Held while the capacity is set, so that the budget and the trial agree.
    private let resizing = Mutex(())

    package init(_ configuration: MemoryConfiguration) {
        commons = ShardCommons(
            shared: SharedPolicyState(
                objective: configuration.policy.objective,
                capacityBytes: configuration.capacityBytes,
                pinnedShareMax: configuration.pinnedShareMax
            ),
            shardCount: configuration.effectiveShardCount
        )
        trial = commons.trial
        shards = ShardSet(commons: commons)
        sweeper = MemorySweeper(shards)
        commons.used.takeAnyway(lookUps.sizeBytes + trial.sizeBytes)
        entrySizeShareMax = configuration.entrySizeShareMax
    }

    deinit { commons.used.giveBack(lookUps.sizeBytes + trial.sizeBytes) }

    /// The number of shards.
    package var shardCount: Int { commons.shardCount }

    // MARK: Writing

    /// Stores `entry` in place of the key's old entry.
    ///
    /// A refusal removes the old entry too.
    ///
    /// `isPermitted` is called first; if it returns `false`, nothing changes and the outcome is
    /// `.removedMeanwhile`. Otherwise `whileLocked` runs once. Both run inside the key's critical
    /// section, must be short, and must not call the memory. `isPermitted` may be called again.
    @discardableResult
    package func store(
        _ entry: Entry,
        whileLocked: () -> Void = {},
        onlyIf isPermitted: () -> Bool = { true }
    ) -> StoreOutcome {
        put(entry, onlyIf: { _ in isPermitted() }, whileLocked)
            ?? .refused(.removedMeanwhile)
    }

    /// Stores an entry read from disk, if the policy would keep it, the key is absent, and
    /// `isCurrent` under the lock.
    @discardableResult
    package func promote(
        _ entry: Entry,
        onlyIf isCurrent: () -> Bool = { true }
    ) -> Bool {
        let hash = entry.head.hash
        // Most entries are not kept, so the present one is looked up last.
        guard !isTooLarge(entry),
            shards.wouldKeep(entry) || Mutant.promotesEverything.isOn,
            shards.door(of: hash).lockedEntry(hash) == nil
        else { return false }
        let outcome = put(
            entry,
            onlyIf: { occupant in occupant == nil && (Mutant.promotesUnasked.isOn || isCurrent()) },
            {}
        )
        return outcome == .stored
    }

    /// Replaces `old` by `new`, if the key still holds that very entry and `isPermitted`.
    ///
    /// If so, `whileLocked` runs once, even if `new` is refused.
    @discardableResult
    package func replaceIfSame(
        _ new: Entry,
        expecting old: Entry,
        whileLocked: () -> Void = {},
        onlyIf isPermitted: () -> Bool = { true }
    ) -> Bool {
        let outcome = put(
            new,
            onlyIf: {
                ($0?.storage === old.storage || Mutant.freshensWhateverIsThere.isOn)
                    && isPermitted()
            },
            whileLocked
        )
        return outcome != nil
    }

    // MARK: Removing

    /// Removes the entry for the key and returns it.
    ///
    /// `isPermitted` is called first; if it returns `false`, nothing changes. Otherwise `whileLocked`
    /// runs once, found or not. Both run inside the key's critical section.
    @discardableResult
    package func remove(
        _ hash: KeyHash,
        key: UnsafeRawBufferPointer,
        whileLocked: () -> Void = {},
        onlyIf isPermitted: () -> Bool = { true }
    ) -> Entry? {
        shards.door(of: hash).remove(
            hash,
            onlyIf: { $0.withKey { $0.hasSameBytes(as: key) } || Mutant.removesByHashAlone.isOn },
            whileLocked: { _ in whileLocked() },
            ifPermitted: isPermitted
        )
    }

    /// Returns when every thread that was inside a key's critical section has left it.
    ///
    /// A store that `isPermitted` allowed before the call has then taken effect, and its
    /// `whileLocked` has run.
    package func letWritersFinish() {
        for door in shards.doors { door.state.withLock { _ in } }
    }

    // MARK: Size

    /// The size of the largest entry that is kept.
    package var entrySizeBytesMax: Int {
        commons.used.capacity.scaled(by: entrySizeShareMax)
    }

    /// The entries and bytes held, in O(shards).
    package func usage() -> StoreUsage {
        var usage = StoreUsage(
            bytes: commons.used.current,
            capacityBytes: commons.used.capacity
        )
        for door in shards.doors { usage.entries += door.state.withLock { $0.count } }
        return usage
    }

    /// The bytes in use that no entry is charged for: tables, queues, sketches.
    package var overheadBytes: Int {
        let fixed = lookUps.sizeBytes + trial.sizeBytes
        return shards.doors.reduce(fixed) { $0 + $1.state.withLock { $0.sizeBytes } }
    }

    /// Sets the capacity without evicting for it.
    func resize(_ bytes: Int) {
        resizing.withLock { _ in
            commons.shared.capacityBytes.store(bytes, ordering: .relaxed)
            trial.setCapacity(bytes)
        }
        // A store that does not see the new capacity has linked an entry that this thread sees.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
    }

    // MARK: Inside

    private func put(
        _ entry: Entry,
        onlyIf isMeant: (_ occupant: Entry?) -> Bool,
        _ whileLocked: () -> Void
    ) -> StoreOutcome? {
        if isTooLarge(entry) {
            return shards.refuse(entry, .tooLarge, onlyIf: isMeant, whileLocked: whileLocked)
        }
        return shards.store(
            entry,
            isPinned: entry.head.storageClass == .pinned && shards.makePinnedRoom(for: entry),
            onlyIf: isMeant,
            whileLocked: whileLocked
        )
    }

    private func isTooLarge(_ entry: Entry) -> Bool {
        Double(entry.chargeBytes) > Double(commons.used.capacity) * entrySizeShareMax
    }
}
