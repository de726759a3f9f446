/// The store that the machines of a fleet share, as this machine sees it.
///
/// It holds copies of entries that any machine may read. Each call has a limit of its own, and a
/// failure is a miss: a cache that cannot reach its shared store works without it.
package protocol SharedTier: Sendable {
    /// Looks up the record of `key`; without a usable record, asks for the key's lease.
    ///
    /// While another machine has the lease, this one waits for its record. `use` turns a record into
    /// a value, and returns `nil` for a record that does not serve the caller. `budget` is the time
    /// of the request, which may look several times; its times are those of `clock`.
    func look<Value: Sendable>(
        _ key: SharedKey,
        _ clock: any CacheClock,
        _ budget: inout SharedBudget,
        _ use: @Sendable (StoredEntry) -> Value?
    ) async -> SharedLook<Value>

    /// The time that a request may lose here, if it begins to look now.
    func budget(startedNanoseconds: UInt64) -> SharedBudget

    /// Copies an entry that was stored on this machine; the copy replaces an older one.
    ///
    /// Returns at once. The lease of the key ends with the copy. `isPermitted` is asked in the step
    /// that queues the copy: a removal that began before makes it false, and one that begins later
    /// ends the copy.
    func publish(_ copies: [SharedCopy], onlyIf isPermitted: () -> Bool)

    /// An entry is about to be removed on this machine: from now on it uses no older record of the
    /// entry's resource. `forget` follows.
    ///
    /// Otherwise a request between the removal and `forget` could read back what was removed.
    func hide(_ key: SharedKey)

    /// Removes the record of an entry that was removed on this machine, and keeps others from
    /// restoring it for some seconds.
    ///
    /// Returns at once; from then on this machine does not use the older record.
    func forget(_ key: SharedKey)

    /// Entries were removed on this machine alone: from now on it uses no older record.
    func forgetEverything()

    /// Ends a lease without a record, unless a record was published under it.
    func end(_ lease: SharedLease, _ ending: SharedLease.Ending)
}

/// The result of a look into the shared store.
package enum SharedLook<Value: Sendable>: Sendable {
    case found(Value)
    /// No other machine fetches the key while the caller does. `older` is a record that did not
    /// serve the caller.
    case lead(SharedLease, older: StoredEntry?)
    /// The caller fetches for itself.
    case alone(older: StoredEntry?)
}
