import HTTPCaching

/// The look into the fleet's shared store before a fetch: what one machine has fetched, the others
/// need not fetch.
struct SharedFetch {
    /// The result of the look.
    enum Finding {
        /// A record that answers the request.
        case answer(FlightAnswer)
        /// The origin must be asked, with the stored response of `context`; the lease is there if
        /// other machines wait for the response.
        case fetch(FetchContext, SharedLease?)
    }

    private let services: Services
    private let tier: any SharedTier
    private let desk: HTTPFlightDesk
    private let context: FetchContext

    /// Returns `nil` if there is no shared store, or the response is not for others.
    init?(_ services: Services, _ desk: HTTPFlightDesk?, _ context: FetchContext) {
        guard let tier = services.tiers.outlet?.tier, let desk, context.policy.reads,
            context.policy.writes, !context.facts.hasRange, context.request.method != .head,
            !context.facts.flags.contains(.noCache), context.facts.maxAgeSeconds != 0
        else { return nil }
        self.services = services
        self.tier = tier
        self.desk = desk
        self.context = context
    }

    func finding(_ permit: StorePermit?) async -> Finding {
        var ticket = context.ticket
        ticket.permit = permit
        let key = context.lookup.key
        switch await look(key) {
        case .found(.index(let entry)):
            // The index is known here already: only another variant can be there.
            guard key == context.key, let variance = adopt(entry, since: ticket) else {
                return .fetch(context, nil)
            }
            switch await look(variance.key) {
            case .found(.response(let entry)): return finding(entry, ticket, variance)
            case .found(.index): return .fetch(context, nil)
            case .lead(let lease, let older):
                return .fetch(confirming(older, under: variance.key, ticket), lease)
            case .alone(let older):
                return .fetch(confirming(older, under: variance.key, ticket), nil)
            }
        case .found(.response(let entry)): return finding(entry, ticket, nil)
        case .lead(let lease, let older):
            return .fetch(confirming(older, under: key, ticket), lease)
        case .alone(let older): return .fetch(confirming(older, under: key, ticket), nil)
        }
    }

    // MARK: Looking

    private enum Use: Sendable {
        case index(StoredEntry)
        case response(StoredEntry)
    }

    private func look(_ key: RequestKey) async -> SharedLook<Use> {
        await tier.look(key.shared, nowSeconds: services.clock.nowSeconds) { entry in
            if VariantIndex.isIndex(entry.entry) { return .index(entry) }
            guard let stored = local(entry, under: key), isNewer(stored) else { return nil }
            let step = ReuseStep(
                stored,
                for: context.facts,
                services.terms(context.policy),
                services.tiers,
                refreshAheadShare: nil,
                nowSeconds: services.clock.nowSeconds
            )
            guard case .respond(.fresh, _, _) = step else { return nil }
            return .response(stored.stored)
        }
    }

    /// The response as an entry of this machine, stored now; `nil` if it is another key's.
    private func local(_ entry: StoredEntry, under key: RequestKey) -> StoredResponse? {
        guard let entry = entry.filed(under: key.storeKey), let stored = StoredResponse(entry)
        else { return nil }
        let blueprint = EntryBuilder(renewing: stored, facts: stored.facts).blueprint
        let own = services.tiers.entry(blueprint, body: CollectionOfOne(entry.entry.body))
        return StoredResponse(StoredEntry(own))
    }

    /// Whether the record is a newer answer than the one that is stored here.
    private func isNewer(_ stored: StoredResponse) -> Bool {
        guard let own = context.found.stored else { return true }
        return stored.facts.responseTimeSeconds > own.facts.responseTimeSeconds
    }

    // MARK: Using

    private func finding(
        _ entry: StoredEntry,
        _ ticket: RemovalLedger.Ticket,
        _ variance: Variance?
    ) -> Finding {
        guard let stored = StoredResponse(entry) else { return .fetch(context, nil) }
        services.tiers.adopt(entry.entry, since: ticket)
        return .answer(
            FlightAnswer(
                status: Int(stored.facts.status),
                fields: stored.fields(),
                content: .found(stored),
                facts: stored.facts,
                variance: variance
            )
        )
    }

    /// Takes over the index of a resource, and finds the key of the request's own variant.
    ///
    /// Returns `nil` if this machine has an index of its own by now.
    private func adopt(_ entry: StoredEntry, since ticket: RemovalLedger.Ticket) -> Variance? {
        let tiers = services.tiers
        guard let entry = entry.filed(under: context.key.storeKey),
            let index = VariantIndex(entry.entry), let vary = index.sets.first
        else { return nil }
        let key = Lookup(services).variantKey(
            of: context.key,
            by: index,
            vary,
            context.request.fields.section
        )
        let isAdopted = desk.settleVariant(of: context.lookup.key.hash, ticket.permit) {
            let isFirst = tiers.peek(context.key) == nil
            if isFirst {
                let metadata = entry.entry.withMetadata { [UInt8]($0) }
                let blueprint = EntryBlueprint(entry.entry, metadata: metadata)
                _ = tiers.put(tiers.entry(blueprint, body: EmptyCollection()), since: ticket)
            }
            return (isFirst, isFirst ? key.hash : context.lookup.key.hash)
        }
        tiers.backing.ring(context.key.hash)
        return isAdopted ? Variance(index: index, vary: vary, key: key) : nil
    }

    /// The context that lets the origin confirm a record that is no longer fresh.
    private func confirming(
        _ older: StoredEntry?,
        under key: RequestKey,
        _ ticket: RemovalLedger.Ticket
    ) -> FetchContext {
        guard context.confirmable == nil, let older, let stored = local(older, under: key),
            stored.facts.flags.contains(.hasAnyValidator), !context.facts.isConditional
        else { return context }
        // A confirmed response replaces the one that is stored, so this one is stored first.
        services.tiers.adopt(stored.entry, since: ticket)
        return context.with(LookupResult(stored, in: .shared, under: key))
    }
}
