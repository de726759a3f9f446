import HTTPCaching

/// The look into the fleet's shared store before a fetch: what one machine has fetched, the others
/// need not fetch.
struct SharedFetch {
    /// The result of the look.
    enum Finding {
        /// A record that answers the request.
        case answer(FlightAnswer)
        /// The origin must be asked, with the stored response of `context`, and other machines wait
        /// for the response.
        case lead(FetchContext, SharedLease)
        /// The origin must be asked, with the stored response of the context.
        case fetch(FetchContext)
    }

    private let services: Services
    private let tier: any SharedTier
    private let desk: FlightDesk
    private let context: FetchContext

    /// Returns `nil` if there is no shared store, or the response is not for others.
    init?(_ services: Services, _ desk: FlightDesk?, _ context: FetchContext) {
        guard let tier = services.tiers.outlet?.tier, let desk, context.policy.reads,
            context.policy.writes, !context.asksForPart, context.asked.request.method != .head,
            !context.isPersonal(services.configuration),
            !services.configuration.caching.demandsOrigin(context.facts, context.policy)
        else { return nil }
        self.services = services
        self.tier = tier
        self.desk = desk
        self.context = context
    }

    func finding(_ permit: StorePermit?) async -> Finding {
        var ticket = context.ticket
        ticket.permit = permit
        var budget = tier.budget(startedNanoseconds: services.clock.monotonicNanoseconds)
        let key = context.lookup.flightKey
        switch await look(key, &budget) {
        case .found(.index(let entry)):
            guard key == context.key, let variance = adopt(entry, since: ticket) else {
                return .fetch(context)
            }
            // The origin is not asked to confirm a variant: requests for other variants wait too.
            switch await look(variance.key, &budget) {
            case .found(.response(let stored)): return answer(stored, ticket, variance)
            case .lead(let lease, _): return .lead(context, lease)
            case .found(.index), .alone: return .fetch(context)
            }
        case .found(.response(let stored)): return answer(stored, ticket, nil)
        case .lead(let lease, let older): return .lead(confirming(older, under: key, ticket), lease)
        case .alone(let older): return .fetch(confirming(older, under: key, ticket))
        }
    }

    // MARK: Looking

    private enum Use: Sendable {
        case index(StoredEntry)
        case response(StoredResponse)
    }

    private func look(
        _ key: RequestKey,
        _ budget: inout SharedBudget
    ) async -> SharedLook<Use> {
        await tier.look(key.shared, services.clock, &budget) { entry in
            if VariantIndex.isIndex(entry.entry) {
                return entry.filed(under: key.storeKey).map { .index($0) }
            }
            guard let stored = local(entry, under: key), isNewer(stored) else { return nil }
            guard case .respond(.fresh, _, _) = ReuseStep(shared: stored, for: context, services)
            else { return nil }
            return .response(stored)
        }
    }

    /// The response as an entry of this machine, stored now; `nil` if it is another key's.
    private func local(_ entry: StoredEntry, under key: RequestKey) -> StoredResponse? {
        let sequence = services.tiers.entrySequence(for: key.hash)
        guard let entry = entry.adopted(under: key.storeKey, sequence: sequence),
            let stored = StoredResponse(entry),
            stored.withEncodedFields({ FieldSection(decoding: $0) }) != nil
        else { return nil }
        return stored
    }

    /// Whether the record is a newer answer than the one that is stored here.
    private func isNewer(_ stored: StoredResponse) -> Bool {
        guard let own = context.found.stored else { return true }
        return stored.facts.responseTimeSeconds > own.facts.responseTimeSeconds
    }

    // MARK: Using

    private func answer(
        _ stored: StoredResponse,
        _ ticket: RemovalLedger.Ticket,
        _ variance: Variance?
    ) -> Finding {
        services.tiers.adopt(stored.entry, since: ticket)
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
    /// Returns `nil` if this machine has another index by now.
    private func adopt(_ entry: StoredEntry, since ticket: RemovalLedger.Ticket) -> Variance? {
        let tiers = services.tiers
        guard let index = VariantIndex(entry.entry), let vary = index.sets.first else { return nil }
        let key = Lookup(services).variantKey(
            of: context.key,
            by: index,
            vary,
            context.asked.request.fields.section
        )
        let flightKey = context.lookup.flightKey.hash
        let isAdopted = desk.settleVariant(of: flightKey, ticket.permit) {
            let own = tiers.peek(context.key)
            let isKnown = own.flatMap { VariantIndex($0) }?.nonce == index.nonce
            if own == nil {
                let metadata = entry.entry.withMetadata { [UInt8]($0) }
                let blueprint = EntryBlueprint(entry.entry, metadata: metadata)
                _ = tiers.put(tiers.makeEntry(blueprint, body: EmptyCollection()), since: ticket)
            }
            let isUsed = own == nil || isKnown
            return (isUsed, isUsed ? key.hash : flightKey)
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
