import Synchronization

/// Soft purges of many entries, and the checks that a removal is in the log before its response
/// leaves.
extension DiskTier {
    // MARK: Stale by tag

    /// Marks stale every entry that carries the tag and is stored by now.
    ///
    /// The mark is in the log of every shard when this returns.
    package func markStale(_ tag: String, whenMarked: () -> Void = {}) async throws {
        try await mark(.tag(tag), whenMarked)
    }

    /// Marks every entry that is stored by now: the origin must confirm it before its next use.
    ///
    /// The mark is in the log of every shard when this returns.
    package func markEverythingStale(whenMarked: () -> Void) async throws {
        try await mark(.everything, whenMarked)
    }

    /// Marks every variant of the resource that is stored by now.
    ///
    /// They are in the resource's shard; `confirmRemoval(of:)` for the resource writes the mark to its
    /// log.
    package func markVariantsStale(of resource: KeyHash) throws {
        let isOpen = shard(resource).markStale(.tag(ResourceTag.name(of: resource)))
        guard isOpen else { throw DiskShard.closed }
    }

    private func mark(_ scope: RemovalScope, _ whenMarked: () -> Void) async throws {
        // Mark in every shard first: a failing device in one shard must not leave the others
        // unmarked.
        var isOpen = true
        for shard in shards { if !shard.markStale(scope) { isOpen = false } }
        whenMarked()
        guard isOpen else { throw DiskShard.closed }
        try await confirmEverywhere()
    }

    /// Confirms the accepted removals in every shard, even if one of them fails.
    func confirmEverywhere() async throws {
        try await inEveryShard { try await $0.confirmRemovals() }
    }

    /// Does the work in all shards at the same time, also if it fails in one; throws a failure.
    func inEveryShard(_ work: @escaping @Sendable (DiskShard) async throws -> Void) async throws {
        let failure = await withTaskGroup(of: (any Error)?.self) { group in
            for shard in shards {
                group.addTask {
                    do { try await work(shard) } catch { return error }
                    return nil
                }
            }
            return await group.reduce(nil) { $0 ?? $1 }
        }
        if let failure { throw failure }
    }

    /// Whether any entry was ever marked stale, by this process or an earlier one.
    package var hasStaleMarks: Bool {
        shards.contains { $0.state.withLock { $0.stale.sequenceMax > 0 } }
    }

    /// Whether a mark may cover the entry; takes no lock, and `false` is certain.
    package func mayBeMarkedStale(_ entry: Entry) -> Bool {
        let head = entry.head
        return shard(head.hash).newestMark.mayCover(head.sequence, hasTags: entry.isReachedByTags)
    }

    /// Whether the entry was stored before one of its tags, or its resource, was marked stale.
    package func isMarkedStale(_ entry: Entry) -> Bool {
        guard mayBeMarkedStale(entry) else { return false }
        let head = entry.head
        return shard(head.hash).state.withLock { $0.stale.covers(entry, sequence: head.sequence) }
    }

    /// Whether the entry was stored before everything was marked stale.
    package func isDoubted(_ entry: Entry) -> Bool {
        let head = entry.head
        guard shard(head.hash).newestMark.mayCover(head.sequence, hasTags: false) else {
            return false
        }
        return shard(head.hash).state.withLock { $0.stale.coversAll(before: head.sequence) }
    }

    /// The sequence number of an entry stored now; every later mark gets a larger one.
    package func entrySequence(for hash: KeyHash) -> UInt64 {
        shard(hash).state.withLock { $0.nextSequence - 1 }
    }

    // MARK: Before a response leaves

    /// Whether the removal just accepted can still be lost when the process ends, or in a power cut
    /// if the durability is `.onRemoval`.
    package func mayLoseRemoval(of hash: KeyHash, isRemoved: Bool) -> Bool {
        let isSynced = configuration.durability == .onRemoval
        return shard(hash).state.withLock { state in
            // A failed device is retried on its own schedule, not once per response.
            guard state.condition == .working else { return false }
            if isSynced, isRemoved || state.hasUnsynchronizedRemoval { return true }
            return state.queue.removalCount > 0
        }
    }

    /// Ensures that a restart cannot bring back a record older than the key's last change.
    ///
    /// Waits only if such an older record may exist, and no longer than the limit. After that only a
    /// kill of the process brings the older record back: until the change is written, the queue holds
    /// it, and look-ups find it there.
    package func settle(_ hash: KeyHash) async throws {
        let shard = shard(hash)
        let isSynced = configuration.durability == .onRemoval
        let (mayComeBack, isRemoval) = shard.state.withLock { state in
            guard state.condition == .working else { return (false, false) }
            return (state.mayComeBack(hash.identity), state.queue.removalCount > 0)
        }
        guard mayComeBack else { return }
        try await watch.call {
            if isSynced, isRemoval { return try await shard.confirmRemovals() }
            try await shard.writeOut()
        }
    }
}

extension DiskShard {
    /// Returns `false` if the shard is closed.
    nonisolated func markStale(_ scope: RemovalScope) -> Bool {
        state.withLock { state in
            guard state.condition != .closed else {
                // Entries in memory become stale even if the shard is closed.
                state.stale.insert(scope, sequence: state.takeSequence())
                return false
            }
            state.markStale(scope)
            return true
        }
    }
}

extension ShardState {
    /// Whether an older record of the key would become the newest one if the process ended now.
    func mayComeBack(_ identity: UInt64) -> Bool {
        if queue.removalCount > 0 { return true }
        let place = index.place(of: identity)
        return place.isQueued && queue[place.queueNode].coversOlderRecord
    }
}
