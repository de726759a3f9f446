/// What a store decided, told while the key is still locked.
///
/// What the engine does in answer (queue a disk write, queue a tombstone) happens in the same order
/// for a key as the stores and removals themselves.
package enum StoreVerdict {
    /// The entry is in place; `replaced` is the one that was there before.
    case stored(replaced: Entry?)
    /// The entry is not kept; `removed` is the one that was there before and is there no more.
    case refused(StoreOutcome.Reason, removed: Entry?)
}
