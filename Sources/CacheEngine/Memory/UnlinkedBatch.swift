/// The entries that one hold of a shard's lock unlinked: one reference for each.
///
/// `ShardCommons.retire` takes the references over once the lock is free.
struct UnlinkedBatch {
    private(set) var references: [Unmanaged<ByteStorage>] = []
    private(set) var chargeBytes = 0

    var count: Int { references.count }

    mutating func add(_ reference: Unmanaged<ByteStorage>) {
        references.append(reference)
        chargeBytes += Entry(unchecked: reference.takeUnretainedValue()).chargeBytes
    }

    func forEachEntry(_ body: (Entry) -> Void) {
        for reference in references { body(Entry(unchecked: reference.takeUnretainedValue())) }
    }
}

/// The position of a walk over a shard's slots, kept from one hold of the lock to the next.
///
/// The walk begins again when the table has grown: the entries are in other slots then. A shard's
/// table only grows, so the number of its slots identifies it; its address may be used again.
struct SlotWalk {
    private var slotCount = 0
    private var start = 0
    /// Whether the last slots of the table have been looked at.
    private(set) var isDone = false

    /// The next slots to look at.
    mutating func advance(in table: EntryTable, atMost count: Int) -> Range<Int> {
        if slotCount != table.slotCount, !Mutant.walksOnInALargerTable.isOn {
            assert(slotCount < table.slotCount, "a table only grows")
            (slotCount, start) = (table.slotCount, 0)
        }
        let slots = start..<min(start + count, table.slotCount)
        start = slots.upperBound
        isDone = start == table.slotCount || Mutant.removesOneBatchOnly.isOn
        return slots
    }
}

/// The victims that one batch of a shard should give up.
struct EvictionGoal: Sendable {
    var part: EvictionPart
    /// No more entries than this.
    var countMax: Int
    /// Bytes of the capacity that should be free.
    var spareBytes: Int
    /// Pinned entries are evicted until they take no more than this.
    var pinnedBytesMax: Int
}
