import Synchronization

/// Limits the entries that are larger than a write queue, over the queues of all shards.
///
/// Such an entry waits alone in its queue. Without a common limit a slow device would keep a largest
/// entry for each shard in memory.
final class OversizeBudget: Sendable {
    private let bytesMax: Int
    private let takenBytes = Atomic(0)

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Takes the bytes of an entry; one that exceeds the limit has the budget for itself.
    func take(_ bytes: Int) -> Bool {
        if Mutant.queuesOversizeInEveryShard.isOn { return true }
        var taken = takenBytes.load(ordering: .relaxed)
        while taken == 0 || taken + bytes <= bytesMax {
            let (isDone, current) = takenBytes.weakCompareExchange(
                expected: taken,
                desired: taken + bytes,
                ordering: .relaxed
            )
            if isDone { return true }
            taken = current
        }
        return false
    }

    func giveBack(_ bytes: Int) { takenBytes.subtract(bytes, ordering: .relaxed) }
}
