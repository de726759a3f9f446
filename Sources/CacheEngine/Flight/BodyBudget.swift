import Synchronization

/// The limits on the bytes that arriving bodies hold.
package struct BodyLimits: Hashable, Sendable {
    /// The bytes of one kind that all bodies hold together.
    package var totalBytes: Int
    /// The bytes that each body may hold although the total is reached, so that it arrives further.
    package var leastBytes: Int

    package static let usualLeastBytes = 64 << 10
    /// The share of the memory's capacity that the bytes of one kind may take beside it.
    private static let shareOfMemory = 0.1
    /// The total beside a small memory.
    private static let totalBytesMin = 32 << 20

    package init(totalBytes: Int, leastBytes: Int = BodyLimits.usualLeastBytes) {
        self.totalBytes = totalBytes
        self.leastBytes = leastBytes
    }

    /// The limits beside a memory of that capacity, with room for the body of its largest entry.
    init(memoryBytes: Int, entryShareMax: Double) {
        let share = max(Self.shareOfMemory, entryShareMax)
        self.init(totalBytes: max(Self.totalBytesMin, memoryBytes.scaled(by: share)))
    }
}

/// The bytes that arriving bodies hold beside the memory, which counts entries alone.
///
/// *Gathered* bytes are kept for the store until their body is complete. *Owed* bytes are kept for
/// readers that have yet to take them. Bytes may be both; each kind has the same limit.
///
/// The count refuses nothing: each body looks at `shortage` before it takes more. It may exceed
/// the total by the bytes that each body may hold in any case, and by one chunk of each.
final class BodyBudget: Sendable {
    /// The kinds of bytes of which there are too many.
    struct Shortage: Hashable {
        var isForReaders = false
        var isForStore = false
    }

    let leastBytes: Int
    private let totalBytes: Atomic<Int>
    private let gathered = Atomic(0)
    private let owed = Atomic(0)

    init(_ limits: BodyLimits) {
        leastBytes = limits.leastBytes
        totalBytes = Atomic(limits.totalBytes)
    }

    var gatheredBytes: Int { gathered.load(ordering: .relaxed) }
    var owedBytes: Int { owed.load(ordering: .relaxed) }

    var shortage: Shortage {
        let total = totalBytes.load(ordering: .relaxed)
        return Shortage(isForReaders: owedBytes > total, isForStore: gatheredBytes > total)
    }

    /// Changes the total.
    func setTotal(_ bytes: Int) { totalBytes.store(bytes, ordering: .relaxed) }

    /// Counts bytes that are kept for the store.
    func gather(_ bytes: Int) { gathered.add(bytes, ordering: .relaxed) }

    func releaseGathered(_ bytes: Int) {
        let rest = gathered.subtract(bytes, ordering: .relaxed).newValue
        assert(rest >= 0, "only gathered bytes are released")
    }

    /// Counts the change of the bytes that one body keeps for its readers.
    func setOwed(_ bytes: Int, before: Int) {
        guard bytes != before else { return }
        let sum = owed.add(bytes - before, ordering: .relaxed).newValue
        assert(sum >= 0, "only owed bytes are released")
    }
}
