/// The slow work: shrinking, in batches of the shards' actors, removals of many entries, releasing
/// and statistics.
extension MemoryTier {
    /// Entries evicted between two suspensions.
    private static let evictionBatchMax = 64

    /// Releases the entries that have left the memory; they count as used until then.
    func releaseRetired() { commons.retired.flush() }

    /// Changes the capacity.
    ///
    /// When it returns, no more than that is in use.
    ///
    /// If the tables alone need more, the memory is empty and uses what the tables need.
    package func setCapacity(_ bytes: Int) async {
        resize(max(0, bytes))
        // A concurrent store makes room for itself, also if it took its bytes before, so this ends.
        await evict(atMost: .max) { $0 }
    }

    /// Evicts until no more than `share` of the capacity is in use.
    ///
    /// The capacity stays.
    ///
    /// Entries that are stored meanwhile may stay.
    package func shrink(toShare share: Double) async {
        // In this order a share that is not a number becomes zero.
        let share = max(0, min(share, 1))
        await evict(atMost: usage().entries) { share < 1 ? Int(Double($0) * share) : $0 }
    }

    /// Removes the entries in `scope`.
    ///
    /// Entries that were in memory when the call began are gone when it returns; the caller orders
    /// the removal against stores of its own. The walk is O(n) in the slots of the memory.
    ///
    /// Removals that are asked for during a walk share the next one, which runs on `executor`. One
    /// `isAlone` has a walk of its own, in the caller's task: it waits for no other executor.
    package func removeAll(
        in scope: RemovalScope,
        on executor: (any TaskExecutor)? = nil,
        isAlone: Bool = false
    ) async -> RemovalCount {
        if isAlone { return await ScopeSweep([scope], of: shards).run()[0] }
        return await sweeper.removeAll(in: scope, on: executor)
    }

    /// How often each event has happened, over all shards.
    package func counters() async -> MemoryCounters {
        var sum = MemoryCounters()
        for shard in shards.shards { sum = sum + (await shard.counters()) }
        sum.hits = lookUps.sum(LookUp.hit.rawValue)
        sum.misses = lookUps.sum(LookUp.miss.rawValue)
        return sum
    }

    /// Evicts the next victims until no more than `target` of the capacity is in use.
    ///
    /// Each batch goes to the shard that holds the next victim of all. The order over all shards is
    /// thus kept to within one batch.
    private func evict(atMost countMax: Int, downTo target: (_ capacity: Int) -> Int) async {
        var left = countMax
        while left > 0 {
            let capacity = commons.used.capacity
            let spareBytes = capacity - target(capacity)
            guard commons.used.excess(with: spareBytes) > 0, let victim = commons.nextVictim()
            else {
                break
            }
            let goal = EvictionGoal(
                part: victim.part,
                countMax: min(left, Self.evictionBatchMax),
                spareBytes: spareBytes,
                pinnedBytesMax: victim.pinnedBytesMax
            )
            left -= await shards.shards[victim.shard].evict(goal)
            assert(left >= 0, "a batch takes no more than its goal")
            await Task.yield()
        }
        commons.retired.flush()
    }
}
