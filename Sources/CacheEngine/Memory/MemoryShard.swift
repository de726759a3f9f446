/// One slice of the key space, as the owner of its slow work: expiry, shrinking, and the counts of
/// both.
///
/// The work is cut into batches. Each batch is one turn of the actor, holds the shard's lock for a
/// bounded number of slots, and retires what it unlinked after the lock. Tasks that share the pool
/// run between two batches. Reads, stores and removals of one key take `door` instead, because a
/// turn of an actor costs more than they do.
actor MemoryShard {
    nonisolated let door: ShardDoor
    private let commons: ShardCommons
    /// The expirations and evictions of all batches.
    private var upkeep = MemoryCounters()
    /// Slots in a row that kept their place because they had hits.
    private var requeuesInARow = 0

    init(index: Int, commons: ShardCommons) {
        self.commons = commons
        door = ShardDoor(index: index, commons: commons)
    }

    /// The events in this shard, through the door and in batches.
    func counters() -> MemoryCounters { door.counters + upkeep }

    /// Removes the expired entries of the whole shard.
    func removeExpired(nowSeconds: UInt32) async -> RemovalCount {
        var removed = RemovalCount()
        if Mutant.sweepsNothing.isOn { return removed }
        var walk = SlotWalk()
        repeat {
            let batch = door.unlinkNext(of: &walk) { $0.isExpired(nowSeconds: nowSeconds) }
            upkeep.expirations += batch.count
            removed = removed + commons.retire(batch)
            if !walk.isDone { await Task.yield() }
        } while !walk.isDone
        return removed
    }

    /// Evicts one batch towards `goal`.
    ///
    /// Returns how many entries were evicted.
    func evict(_ goal: EvictionGoal) -> Int {
        let batch = door.unlinkVictims(goal, &requeuesInARow)
        upkeep.evictions += batch.count
        _ = commons.retire(batch)
        return batch.count
    }
}
