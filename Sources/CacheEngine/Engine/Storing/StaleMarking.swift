import HTTPCaching

/// Makes the stored responses of one resource stale.
///
/// Where the stored response cannot be marked (a removal is under way, or a look-up failed), it is
/// removed: a purge that was asked for must not be lost.
struct StaleMarking {
    /// The time to read a response that is to be marked; a device that takes longer may hang.
    private static let readNanoseconds: UInt64 = 250_000_000

    private let services: Services

    init(_ services: Services) { self.services = services }

    /// Makes the response stale that a request with `fields` selects; where machines share entries,
    /// all variants.
    ///
    /// - Returns: Whether there was one.
    func mark(_ key: RequestKey, _ fields: FieldSection) async throws -> Bool {
        let tiers = services.tiers
        // Another machine may share an index again that leads to a response whose index this one
        // has lost: no look-up finds that response now.
        if tiers.hasOutlet { return try await mark(key) }
        tiers.outdateFetches(of: key)
        let ticket = tiers.ledger.ticket()
        // A disk waits for half of the time that it is given; a custom store has limits of its own.
        let until = services.clock.monotonicNanoseconds &+ 2 * Self.readNanoseconds
        let lookup = await Lookup(services).result(
            for: key,
            fields,
            untilNanoseconds: tiers.backing.disk == nil ? nil : until
        )
        // A variant that was not read in time may be the one that a later request gets.
        guard let stored = lookup.stored, !lookup.isUncertain else {
            // A closed tier finds nothing that it holds.
            guard services.supervisor.isOpen else { throw CacheError.cacheShutDown }
            if lookup.isUncertain || !tiers.backing.isLookUpConclusive {
                return try await tiers.removeDurably(key)
            }
            return false
        }
        await mark(stored, since: ticket)
        try await tiers.confirm(lookup.key.hash)
        return true
    }

    /// Makes the response stale that is stored under the resource's own key, or all its variants.
    ///
    /// `whenMarked` is called as soon as that holds in this process.
    ///
    /// - Returns: Whether there was such a response, or an index of variants.
    @discardableResult
    func mark(_ key: RequestKey, whenMarked: () -> Void = {}) async throws -> Bool {
        let tiers = services.tiers
        tiers.outdateFetches(of: key)
        // Without an index too: another machine may have kept it, and share it again.
        if tiers.hasOutlet { try tiers.markVariantsStale(of: key) }
        let ticket = tiers.ledger.ticket()
        let isFound: Bool
        // A custom store has limits of its own.
        if tiers.backing.disk == nil || tiers.peek(key) != nil {
            isFound = try await markFound(key, since: ticket)
        } else {
            isFound = try await markInTime(key, since: ticket)
        }
        whenMarked()
        try await tiers.confirm(key.hash)
        return isFound
    }

    /// Marks what is found, in this process, if that `isWanted` once it is found.
    private func markFound(
        _ key: RequestKey,
        since ticket: RemovalLedger.Ticket,
        isWanted: () -> Bool = { true }
    ) async throws -> Bool {
        let tiers = services.tiers
        let entry = await tiers.entry(key)?.0
        // It has been removed meanwhile, and what is stored now came later.
        guard isWanted() else { return false }
        if let entry, let stored = StoredResponse(entry) {
            await mark(stored, since: ticket)
            return true
        }
        let hasVariants = entry.flatMap { VariantIndex($0.entry) } != nil
        if hasVariants { try tiers.markVariantsStale(of: key) }
        if hasVariants, !tiers.backing.entriesOutliveMarks { return true }
        return tiers.removeAtOnce(key) || hasVariants
    }

    /// Marks what is found, unless the device does not return it in time.
    private func markInTime(
        _ key: RequestKey,
        since ticket: RemovalLedger.Ticket
    ) async throws -> Bool {
        let isFound = Race<Bool>()
        let executor = services.configuration.taskExecutor
        Task(executorPreference: executor) {
            do {
                let isMarked = try await markFound(key, since: ticket) { isFound.isOpen }
                isFound.finish(.success(isMarked))
            } catch { isFound.finish(.failure(error)) }
        }
        let timer = Task(executorPreference: executor) { [services] in
            try await services.clock.sleep(nanoseconds: Self.readNanoseconds)
            isFound.finish(.success(services.tiers.removeAtOnce(key)))
        }
        defer { timer.cancel() }
        return try await isFound.resultDespiteCancellation()
    }

    /// The caller confirms the mark.
    private func mark(_ stored: StoredResponse, since ticket: RemovalLedger.Ticket) async {
        let tiers = services.tiers
        // The origin must confirm it before its next use. A renewed entry would count as stored now,
        // and so lose that stronger mark.
        if tiers.isDoubted(stored.stored.entry) { return }
        var facts = stored.facts
        facts.freshnessLifetimeSeconds = 0
        let blueprint = EntryBuilder(renewing: stored, facts: facts).blueprint
        let renewed = await tiers.renewed(stored.stored, as: blueprint)
        // The fleet's log tells the others; a copy of this machine may be older than theirs.
        let isMarked = await tiers.replace(
            stored.stored,
            by: renewed,
            since: ticket,
            isShared: false
        )
        if isMarked || Mutant.losesMarksOfURLs.isOn { return }
        tiers.removeAtOnce(RequestKey(stored.stored.key))
    }
}
