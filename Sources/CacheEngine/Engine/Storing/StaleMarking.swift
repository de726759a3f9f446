import HTTPCaching

/// Makes the stored responses of one resource stale.
///
/// Where the stored response cannot be marked (a removal is under way, or a look-up failed), it is
/// removed: a purge that was asked for must not be lost.
struct StaleMarking {
    private let services: Services

    init(_ services: Services) { self.services = services }

    /// Makes the response stale that a request with `fields` selects.
    ///
    /// - Returns: Whether there was one.
    func mark(_ key: RequestKey, _ fields: FieldSection) async throws -> Bool {
        let tiers = services.tiers
        // The other machines cannot tell which variant it is.
        if tiers.hasOutlet { return try await mark(key) }
        tiers.outdateFetches(of: key)
        let ticket = tiers.ledger.ticket()
        let lookup = await Lookup(services).result(for: key, fields)
        guard let stored = lookup.stored else {
            // A closed tier finds nothing that it holds.
            guard services.supervisor.isOpen else { throw CacheError.cacheShutDown }
            if !tiers.backing.isLookUpConclusive { _ = try await tiers.removeDurably(key) }
            return false
        }
        try await mark(stored, since: ticket)
        try await tiers.confirm(lookup.key.hash)
        return true
    }

    /// Makes the response stale that is stored under the resource's own key, or all its variants.
    ///
    /// - Returns: Whether there was such a response, or an index of variants.
    @discardableResult
    func mark(_ key: RequestKey) async throws -> Bool {
        let tiers = services.tiers
        tiers.outdateFetches(of: key)
        let ticket = tiers.ledger.ticket()
        let entry = await tiers.entry(key)?.0
        let hasVariants = entry.flatMap { VariantIndex($0.entry) } != nil
        // Without an index too: another machine may have kept it, and share it again.
        if hasVariants || tiers.hasOutlet { try await tiers.markVariantsStale(of: key) }
        guard let entry, let stored = StoredResponse(entry) else {
            if hasVariants, !tiers.backing.entriesOutliveMarks { return true }
            let isRemoved = try await tiers.removeDurably(key)
            return isRemoved || hasVariants
        }
        try await mark(stored, since: ticket)
        try await tiers.confirm(key.hash)
        return true
    }

    private func mark(_ stored: StoredResponse, since ticket: RemovalLedger.Ticket) async throws {
        // The origin must confirm it before its next use. A renewed entry would count as stored now,
        // and so lose that stronger mark.
        if services.tiers.isDoubted(stored.stored.entry) { return }
        var facts = stored.facts
        facts.freshnessLifetimeSeconds = 0
        let blueprint = EntryBuilder(renewing: stored, facts: facts).blueprint
        let renewed = await services.tiers.renewed(stored.stored, as: blueprint)
        let tiers = services.tiers
        // The fleet's log tells the others; a copy of this machine may be older than theirs.
        let isMarked = await tiers.replace(
            stored.stored,
            by: renewed,
            since: ticket,
            isShared: false
        )
        if isMarked || Mutant.losesMarksOfURLs.isOn { return }
        _ = try await tiers.removeDurably(RequestKey(stored.stored.key))
    }
}
