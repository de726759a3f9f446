import Synchronization

extension DiskTier: CacheStore {
    package func entry(for key: StoreKey) async throws -> StoredEntry? {
        var result = key.bytes.withUnsafeBytes { read(key.hash, key: $0) }
        if case .mustWait = result { result = await readWaiting(key.hash, key: key.bytes) }
        guard case .hit(let entry, _) = result else { return nil }
        return entry
    }

    package func store(_ entry: StoredEntry) async throws -> StoreOutcome {
        guard let body = entry.detachedBody else { return enqueue(entry.entry) }
        if let own = body as? DiskBody { return enqueue(entry.entry, body: own) }
        return enqueue(entry.entry, body: try await copy(body, for: entry.entry.head.hash))
    }

    package func remove(_ key: StoreKey) async throws -> Bool {
        let wasThere = enqueueRemoval(key.hash)
        // An earlier removal of the key may not be written yet.
        if wasThere || hasUnconfirmedRemovals(key.hash) { try await confirmRemoval(of: key.hash) }
        return wasThere
    }

    package func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        try await removeAll(in: scope) {}
    }

    func removeAll(
        in scope: RemovalScope,
        whenForgotten: () async -> Void
    ) async throws -> RemovalCount {
        let (removed, failure) = forgetAll(in: scope)
        await whenForgotten()
        // Also after a failure: the other shards write what they have removed, and notice that the
        // directory is gone.
        do { try await confirmEverywhere() } catch { throw failure ?? error }
        if let failure { throw failure }
        // One shard after the other: together they would keep every thread of the pool. One segment a
        // step: what the shard has to write meanwhile waits for no more than that.
        if scope == .everything {
            for shard in shards { while await shard.reclaimPurgedSegment() {} }
        }
        return removed
    }

    /// Removes in every shard before any is confirmed: neither a failing device in one shard nor a
    /// closed shard must keep the others' entries.
    ///
    /// Returns the first failure.
    private func forgetAll(
        in scope: RemovalScope
    ) -> (removed: RemovalCount, failure: (any Error)?) {
        var removed = RemovalCount()
        var failure: (any Error)?
        for shard in shards {
            do { removed = removed + (try shard.forgetAll(in: scope)) } catch {
                failure = failure ?? error
                if Mutant.stopsAtAClosedShard.isOn { break }
            }
        }
        return (removed, failure)
    }

    package func usage() async -> StoreUsage {
        var usage = StoreUsage()
        for shard in shards {
            let (entries, queued) = shard.state.withLock { ($0.index.count, $0.queue.bytes) }
            let balance = shard.ledger.balance
            usage.entries += entries
            usage.bytes += balance.usedBytes + queued
            usage.capacityBytes += balance.capacityBytes
        }
        usage.bytes += DiskGeometry.reservedBytes(shardCount: shards.count)
        usage.capacityBytes += DiskGeometry.reservedBytes(shardCount: shards.count)
        return usage
    }

    package func flush() async throws {
        let reported = shards.map { shard in shard.state.withLock { $0.reportedLosses } }
        try await inEveryShard { try await $0.flush(reported: reported[$0.settings.number]) }
    }

    /// Copies the body of another store to a file of this tier.
    private func copy(_ body: any BodyReader, for hash: KeyHash) async throws -> DiskBody {
        let writer = try await beginBody(for: hash, expectedBytes: body.count)
        var offset = 0
        while offset < body.count {
            let end = min(body.count, offset + BodyCodec.blockBytes)
            let bytes = try await body.read(offset..<end)
            guard !bytes.isEmpty else {
                throw CacheError(
                    .storageFailed,
                    detail: "A stored body ended after \(offset) of \(body.count) bytes"
                )
            }
            try await writer.append(bytes)
            offset += bytes.count
        }
        return try await writer.finish()
    }
}
