import HTTPCaching

/// Passes the changes of this machine on to the shared store of a fleet.
///
/// An entry that is stored here is copied if other machines may use it; otherwise, and if it is
/// removed here, its record is removed.
struct SharedOutlet: Sendable {
    let tier: any SharedTier

    /// The longest time that a record serves.
    private static let lifetimeSecondsMax = 24 * 60 * 60

    /// An entry was stored on this machine; `index` is that of its resource, if it is a variant.
    ///
    /// `isPermitted` says whether it may still be stored: it could have been removed meanwhile.
    func stored(
        _ entry: StoredEntry,
        index: StoredEntry?,
        since ticket: RemovalLedger.Ticket,
        nowSeconds: Int64,
        onlyIf isPermitted: () -> Bool
    ) {
        let key = RequestKey(entry.key)
        guard let response = StoredResponse(entry), response.parts == nil else { return }
        let lifetime = lifetimeSeconds(of: response.facts, nowSeconds)
        guard entry.storageClass != .session, !entry.isMemoryOnly, entry.detachedBody == nil,
            entry.sizeBytes <= SharedRecord.entryBytesMax, lifetime > 0,
            !response.facts.flags.contains(.noCache)
        else { return tier.forget(key.shared) }
        let copy = { (key: RequestKey, entry: StoredEntry) in
            SharedCopy(
                key: key.shared,
                entry: entry,
                position: ticket.fleetPosition,
                nowSeconds: nowSeconds,
                lifetimeSeconds: lifetime,
                mayReplace: ticket.mayReplaceShared
            )
        }
        // A machine that finds the index looks for the variant next, so the index comes second.
        let copies = [copy(key, entry)] + (index.map { [copy(RequestKey($0.key), $0)] } ?? [])
        tier.publish(copies, onlyIf: isPermitted)
    }

    /// An entry is about to be removed on this machine alone.
    func removes(_ key: RequestKey) {
        if !Mutant.hidesRecordsLate.isOn { tier.hide(key.shared) }
    }

    /// An entry was removed on this machine alone.
    func removed(_ key: RequestKey) { tier.forget(key.shared) }

    /// Entries are about to be removed on this machine, or were removed.
    func removesAll(in scope: RemovalScope) {
        switch scope {
        // The fleet's log orders these.
        case .everything, .tag: break
        case .storageClass, .storedAfter, .storedBefore: tier.forgetEverything()
        }
    }

    /// The rest of the lifetime, and the longest time for which the response may be served stale.
    private func lifetimeSeconds(of facts: StoredFacts, _ nowSeconds: Int64) -> Int {
        let window = max(facts.staleWhileRevalidateSeconds, facts.staleIfErrorSeconds)
        let lifetime = Int(window) - facts.stalenessSeconds(at: nowSeconds)
        return min(lifetime, Self.lifetimeSecondsMax)
    }
}
