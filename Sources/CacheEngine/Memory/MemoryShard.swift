/// One slice of the key space, as the owner of its slow work: shrinking, and its count.
///
/// The work is cut into batches. Each batch is one turn of the actor, holds the shard's lock for a
/// bounded number of slots, and retires what it unlinked after the lock. Tasks that share the pool
/// run between two batches. Reads, stores and removals of one key take `door` instead, because a
/// turn of an actor costs more than they do.
actor MemoryShard {
    nonisolated let door: ShardDoor
    private let commons: ShardCommons
    /// The evictions of all batches.
    private var evictions = 0
    /// Slots in a row that kept their place because they had hits.
    private var requeuesInARow = 0

    init(index: Int, commons: ShardCommons) {
        self.commons = commons
        door = ShardDoor(index: index, commons: commons)
    }

    /// The events in this shard, through the door and in batches.
    func counters() -> MemoryCounters {
        var counters = door.counters
        counters.evictions += evictions
        return counters
    }

    /// Evicts one batch towards `goal`.
    ///
    /// Returns how many entries were evicted.
    func evict(_ goal: EvictionGoal) -> Int {
        let batch = door.unlinkVictims(goal, &requeuesInARow)
        evictions += batch.count
        commons.retire(batch)
        return batch.count
    }
}
