import HTTPCaching
import Synchronization

/// Removals and soft purges, and the promises that a caller waits for.
extension TieredStore {
    // MARK: One key

    /// Removes the entry, and forbids fetches under way to restore it.
    ///
    /// - Returns: Whether there was an entry, as far as is known without reading the disk.
    @discardableResult
    func removeAtOnce(_ key: RequestKey) -> Bool {
        // Noted under the lock: no request can take a ticket after the removal and then see the old
        // entry.
        remove(key) { ledger.note(key.hash) }
    }

    /// Removes the entry that is stored now; fetches under way may still store their responses.
    func removeStored(_ key: RequestKey) {
        outlet?.removes(key)
        remove(key) {}
        outlet?.removed(key)
    }

    @discardableResult
    private func remove(_ key: RequestKey, whileLocked note: () -> Void) -> Bool {
        var wasBehind = false
        let removed = key.bytes.withUnsafeBytes { bytes in
            memory.remove(key.hash, key: bytes) {
                defer { note() }
                arrivals.outdate(key.hash)
                if Mutant.removesFromMemoryAlone.isOn { return }
                wasBehind = backing.acceptRemoval(of: key.storeKey)
            }
        }
        backing.ring(key.hash)
        return removed != nil || wasBehind
    }

    /// Removes the entry; the removal survives the end of the process once this returns.
    ///
    /// `whenForgotten` is called before the device is waited for.
    func removeDurably(
        _ key: RequestKey,
        whenForgotten: () -> Void = {}
    ) async throws -> Bool {
        let isRemoved = removeAtOnce(key)
        whenForgotten()
        try await backing.confirmRemoval(of: key.hash)
        return isRemoved
    }

    /// Removes the entry before a response is returned.
    ///
    /// The removal survives the end of the process once this method has returned, unless the device
    /// fails or hangs: that is counted, and the response is returned all the same.
    @discardableResult
    func remove(_ key: RequestKey) async -> Bool {
        outlet?.removes(key)
        let isRemoved = removeAtOnce(key)
        outlet?.removed(key)
        await confirmBeforeResponse(key, isRemoved: isRemoved)
        return isRemoved
    }

    /// Removes the entry before a response is returned that may take its place.
    ///
    /// - Returns: Whether there was an entry, and the ticket for that response: this removal does not
    ///   forbid to store it.
    func remove(
        _ key: RequestKey,
        for ticket: RemovalLedger.Ticket
    ) async -> (isRemoved: Bool, ticket: RemovalLedger.Ticket) {
        var own = ticket
        outlet?.removes(key)
        let isRemoved = remove(key) { own = ledger.note(key.hash, by: ticket) }
        outlet?.removed(key)
        await confirmBeforeResponse(key, isRemoved: isRemoved)
        return (isRemoved, own)
    }

    private func confirmBeforeResponse(_ key: RequestKey, isRemoved: Bool) async {
        guard backing.mayLoseRemoval(of: key.hash, isRemoved: isRemoved) else { return }
        try? await backing.confirmRemovalInTime(of: key.hash)
    }

    /// Returns when the last operation on the key survives the end of the process.
    func confirm(_ hash: KeyHash) async throws { try await backing.confirmRemoval(of: hash) }

    /// Returns when the end of the process can no longer restore an older entry of the key; waits
    /// only if there is one on disk.
    func settle(_ hash: KeyHash) async { try? await backing.settle(hash) }

    /// Forbids fetches of the resource that are under way to store their responses.
    func outdateFetches(of key: RequestKey) {
        ledger.note(key.hash, isSoft: true)
        memory.letWritersFinish()
    }

    /// Whether a response that was found since `ticket` may have been removed meanwhile.
    ///
    /// The ledger tells it of others too, which have the same place there. The memory still holds
    /// such a one, and reaches it.
    func mayHaveRemoved(_ stored: StoredEntry, since ticket: RemovalLedger.Ticket) -> Bool {
        guard ledger.mayHaveRemoved(stored.entry, since: ticket) else { return false }
        let key = RequestKey(stored.key)
        return peek(key)?.isCopy(of: stored.entry) != true || !isReached(key)
    }

    // MARK: Many keys

    /// Removes all entries in `scope`, and forbids fetches under way to restore them.
    ///
    /// The tier behind the memory forgets them first: a reader that finds nothing in memory would
    /// otherwise promote an entry from there. Before that, stores that were permitted when the
    /// removal began are finished: behind the memory their entries would arrive after the removal
    /// and outlive it. The memory does not wait until the device has confirmed the removal, and nor do
    /// later stores, unless the store behind the memory has no order of its own.
    ///
    /// `whenForgotten` is called as soon as nothing that `scope` covers is found in this process.
    func removeAll(
        in scope: RemovalScope,
        whenForgotten: () -> Void = {}
    ) async throws -> RemovalCount {
        ledger.begin(scope)
        if !Mutant.letsWritersGoOn.isOn { memory.letWritersFinish() }
        outlet?.removesAll(in: scope)
        var isUnderWay = true
        func end() {
            guard isUnderWay else { return }
            isUnderWay = false
            // Records that were published meanwhile are of entries that were stored before.
            outlet?.removesAll(in: scope)
            ledger.end(scope)
        }
        defer { end() }
        var inMemory = RemovalCount()
        let behind = try await backing.removeAll(in: scope) {
            if Mutant.keepsPurgedEntriesInMemory.isOn { return }
            inMemory = await memory.removeAll(
                in: scope,
                on: executor,
                isAlone: AwaitedWork.executor != nil
            )
            if backing.ordersRemovals, !Mutant.storesNothingMeanwhile.isOn { end() }
            whenForgotten()
        }
        // An entry in memory is also behind it, unless it is for memory only.
        return RemovalCount(
            entries: max(inMemory.entries, behind.entries),
            bytes: inMemory.bytes + behind.bytes
        )
    }

    // MARK: Soft purges

    /// Makes all entries stale that carry the tag and are stored now; the response of a fetch under
    /// way, which may be older, is not stored.
    ///
    /// `whenMarked` is called before the device is waited for.
    func markStale(_ tag: String, whenMarked: () -> Void = {}) async throws {
        ledger.begin(.tag(tag), isSoft: true)
        memory.letWritersFinish()
        // Before the marks are set: hits check for marks from now on.
        isAnythingMarked.store(true, ordering: .releasing)
        try await softPurges.markStale(tag) {
            ledger.end(.tag(tag), isSoft: true)
            whenMarked()
        }
    }

    /// Makes all variants of the resource stale that are stored now.
    ///
    /// `outdateFetches` comes before: a response of a fetch under way may be older. `confirm` for the
    /// resource makes the mark durable.
    func markVariantsStale(of resource: RequestKey) throws {
        // Before the mark is set: hits check for marks from now on.
        isAnythingMarked.store(true, ordering: .releasing)
        try softPurges.markVariantsStale(of: resource.hash)
    }

    /// Makes all entries stale that are stored now, so that the origin must confirm each before its
    /// next use; the responses of fetches under way are not stored.
    ///
    /// `whenMarked` is called before the device is waited for.
    func markEverythingStale(whenMarked: () -> Void = {}) async throws {
        ledger.begin(.everything, isSoft: true)
        memory.letWritersFinish()
        isAnythingMarked.store(true, ordering: .releasing)
        try await softPurges.markEverythingStale {
            ledger.end(.everything, isSoft: true)
            whenMarked()
        }
    }

    /// Whether a soft purge may cover the entry; takes no lock, and `false` is certain.
    @inline(__always)
    func mayBeMarkedStale(_ entry: Entry) -> Bool {
        isAnythingMarked.load(ordering: .acquiring) && mayBeCovered(entry)
    }

    @inline(never)
    private func mayBeCovered(_ entry: Entry) -> Bool { softPurges.mayBeMarkedStale(entry) }

    /// Whether everything has been declared stale since the entry was stored.
    func isDoubted(_ entry: Entry) -> Bool {
        isAnythingMarked.load(ordering: .acquiring) && softPurges.isDoubted(entry)
    }

    /// The facts of the response as soft purges have left them.
    func currentFacts(of stored: StoredResponse) -> StoredFacts {
        var facts = stored.facts
        guard isMarkedStale(stored.entry) else { return facts }
        facts.freshnessLifetimeSeconds = 0
        // The entry may have been purged: it must not be served stale either.
        if isDoubted(stored.entry), !Mutant.servesWhatIsDoubted.isOn {
            facts.flags.insert(.noCache)
        }
        return facts
    }

    /// Whether the entry, or a tag of it, has been declared stale since it was stored.
    func isMarkedStale(_ entry: Entry) -> Bool {
        mayBeMarkedStale(entry) && softPurges.isMarkedStale(entry)
    }
}
