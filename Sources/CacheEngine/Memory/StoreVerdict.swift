/// The outcome of a store, reported while the key is still locked.
///
/// The engine acts on it at once (it queues a disk write or a tombstone), so that the disk sees the
/// operations on a key in the order in which the memory performed them.
package enum StoreVerdict {
    /// The entry is in place; `replaced` is the old one.
    case stored(replaced: Entry?)
    /// The entry is not kept; `removed` is the old one, which is no longer in place.
    case refused(StoreOutcome.Reason, removed: Entry?)
}
