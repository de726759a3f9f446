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
